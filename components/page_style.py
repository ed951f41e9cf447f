"""How pages look: one style sheet. In Python, because a stage's key covers modules and not data.

PALETTE   custom properties, by the reader's light or dark setting
PICTURES  shaded text, bars and SVG: what a notebook shows too
LAYOUT    the page around them
LEAVES    texts with glosses in their margin, and two texts side by side
"""

PALETTE = """
:root{--paper:#fbfaf6;--card:#fff;--ink:#1c1f24;--soft:#62676f;--line:#e3dfd4;--accent:#0b6e6e;
--for:13 124 122;--against:196 98 16;--good:#1d7a46;--bad:#b3261e;
--c0:#0b6e6e;--c1:#c46210;--c2:#5b4b9a;--c3:#9b2f5d;--c4:#4d7c0f;--c5:#24609c}
@media (prefers-color-scheme:dark){:root{--paper:#14171b;--card:#1c2026;--ink:#e9e6df;
--soft:#9aa1ab;--line:#30353d;--accent:#5cc4bf;--for:66 190 184;--against:236 148 66;
--good:#5fc48b;--bad:#f08a80;
--c0:#5cc4bf;--c1:#ec9442;--c2:#a99be6;--c3:#e38ab0;--c4:#a3c95c;--c5:#7db4ea}}
"""

PICTURES = """
.heat{font-family:ui-monospace,"SF Mono","DejaVu Sans Mono",monospace;font-size:.86em;
white-space:pre-wrap;line-height:1.95;margin:.3rem 0;overflow-wrap:anywhere}
mark{color:inherit;border-radius:.22em;padding:.12em .03em}
mark.for{background:rgb(var(--for)/var(--w))}mark.against{background:rgb(var(--against)/var(--w))}
.bar{display:inline-block;position:relative;width:8rem;height:.75rem;vertical-align:middle;
background:linear-gradient(var(--line),var(--line)) 50% 0/1px 100% no-repeat}
.bar i{position:absolute;top:0;height:100%;border-radius:.15rem}
.bar.for i{left:50%;background:rgb(var(--for))}
.bar.against i{right:50%;background:rgb(var(--against))}
svg text{font-family:inherit;fill:var(--soft)}svg .strong{fill:var(--ink)}
svg .on-fill{fill:var(--paper);font-weight:600}svg .light{font-weight:400;opacity:.85}
svg .halo{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
svg .dot{opacity:.8}svg .dot:hover{opacity:1}
.swatch{display:inline-block;width:.75rem;height:.75rem;border-radius:.2rem;margin-right:.45rem}
.stacked{display:flex;height:.9rem;border-radius:.3rem;overflow:hidden;margin-top:.8rem}
.stacked i{display:block;opacity:.75}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.82rem;
color:var(--soft);margin:.5rem 0 0}
.legend i{display:inline-block;width:.75rem;height:.75rem;border-radius:.2rem;margin-right:.35rem}
.legend svg{display:inline-block;width:.75rem;height:.75rem;border-radius:0;margin-right:.35rem}
svg .grid{stroke:var(--line);stroke-width:1}svg .axis{stroke:var(--soft);stroke-width:1}
"""

LAYOUT = """
*{box-sizing:border-box}
html{scroll-behavior:smooth}
body{margin:0 auto;max-width:74rem;padding:0 clamp(1rem,4vw,3rem) 5rem;background:var(--paper);
color:var(--ink);font:16px/1.6 ui-sans-serif,system-ui,"Segoe UI","DejaVu Sans",sans-serif}
header{padding:3.2rem 0 1.2rem}
header svg{display:block;margin-bottom:1rem}
h1,h2,h3{font-family:ui-serif,"Iowan Old Style",Georgia,"DejaVu Serif",serif;font-weight:600;
line-height:1.2;text-wrap:balance}
h1{font-size:clamp(2rem,5vw,3rem);margin:0}
h2{font-size:1.75rem;margin:0 0 .3rem}
h3{font-size:1.12rem;margin:2rem 0 .5rem}
header p,.lead{color:var(--soft);max-width:46rem;margin:.4rem 0 1.2rem}
nav{position:sticky;top:0;z-index:2;display:flex;flex-wrap:wrap;gap:.2rem 1.3rem;padding:.7rem 0;
background:var(--paper);border-bottom:1px solid var(--line);font-size:.88rem}
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}
section{padding-top:3.2rem;scroll-margin-top:1rem}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(11.5rem,1fr));gap:.9rem;
margin:1rem 0 1.6rem}
.cards div{background:var(--card);border:1px solid var(--line);border-radius:.7rem;
padding:.85rem 1rem}
dt{font-size:.8rem;color:var(--soft)}
dd{margin:.1rem 0 0;font-size:1.5rem;font-weight:600;font-variant-numeric:tabular-nums;
line-height:1.3}
dd small{display:block;font-size:.8rem;font-weight:400;color:var(--soft);overflow-wrap:normal}
.cards p{margin:.2rem 0 0;font-size:.8rem;color:var(--soft);line-height:1.4}
.scroll{overflow-x:auto;margin:.8rem 0 1.4rem}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding-bottom:.4rem}
th{text-align:left;font-weight:600;vertical-align:bottom;white-space:nowrap;
border-bottom:2px solid var(--line);padding:.35rem .9rem .35rem 0}
th small{display:block;font-weight:400;color:var(--soft)}
td{border-bottom:1px solid var(--line);padding:.38rem .9rem .38rem 0;vertical-align:top}
tbody tr:hover{background:color-mix(in srgb,var(--accent) 6%,transparent)}
td.number{text-align:right;white-space:nowrap}th.number{text-align:right}.none{color:var(--soft);font-style:italic}
td{max-width:34rem}.unbroken{white-space:nowrap}
code{font-family:ui-monospace,"SF Mono","DejaVu Sans Mono",monospace;font-size:.86em}
blockquote{margin:.4rem 0;padding:.1rem 0 .1rem .9rem;border-left:3px solid var(--line);
white-space:pre-wrap;overflow-wrap:anywhere;font-size:.92rem}
figure{margin:1rem 0 1.6rem}
figure svg,figure img{display:block;width:100%;height:auto;border-radius:.5rem}
figure img{background:#fff}
figcaption{color:var(--soft);font-size:.86rem;margin-top:.4rem;max-width:46rem}
.row{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(21rem,100%),1fr));gap:0 2.4rem;
align-items:start}
.row>div{min-width:0}
.note{border-left:3px solid var(--c1);padding:.5rem 1rem;margin:1rem 0;
border-radius:0 .4rem .4rem 0;
background:color-mix(in srgb,var(--c1) 8%,transparent);max-width:52rem}
.badge{display:inline-block;border-radius:1rem;padding:.05rem .6rem;font-size:.8rem;
border:1px solid var(--line);color:var(--soft)}
.badge.good{color:var(--good);border-color:currentColor}
.badge.bad{color:var(--bad);border-color:currentColor}
details{border:1px solid var(--line);border-radius:.7rem;padding:.7rem 1.1rem;margin:.8rem 0;
background:var(--card)}
summary{cursor:pointer;font-weight:600}details[open] summary{margin-bottom:.6rem}
@media print{nav{position:static}details{break-inside:avoid}body{max-width:none}}
"""

LEAVES = """
.leaf{display:grid;grid-template-columns:minmax(0,1fr) 17rem;gap:0 2rem;padding:.9rem 0;
border-top:1px solid var(--line);scroll-margin-top:3.4rem}
.leaf:last-child{border-bottom:1px solid var(--line)}
.verse{font-family:ui-serif,"Iowan Old Style",Georgia,"DejaVu Serif",serif;font-size:1.12rem;
line-height:1.85;white-space:break-spaces;overflow-wrap:anywhere;margin:0;max-width:46rem}
.verse mark{padding:.14em 0}
.verse .end{font:600 .62rem/1 ui-sans-serif,system-ui,sans-serif;color:var(--soft);
border:1px solid var(--line);border-radius:.3rem;padding:.1rem .25rem;margin:0 .25rem;
vertical-align:.15em;white-space:nowrap}
.prompt .verse{color:var(--soft)}
.gloss{font-size:.82rem;line-height:1.5;color:var(--soft);min-width:0}
.gloss b{color:var(--ink);font-weight:600}
.gloss ul{list-style:none;margin:.2rem 0 .4rem;padding:0}
.gloss li{display:flex;gap:.4rem;align-items:baseline}
.gloss li span{min-width:0;overflow-wrap:anywhere;color:var(--ink)}
.gloss li small{margin-left:auto;font-variant-numeric:tabular-nums;white-space:nowrap}
.gloss .swatch{flex:none;margin:0;width:.6rem;height:.6rem}
.near{margin:.5rem 0 0;padding:0;list-style:none;display:grid;gap:0 2.4rem;
grid-template-columns:repeat(auto-fill,minmax(min(24rem,100%),1fr))}
.near li{border-top:1px solid var(--line);padding:.65rem 0;min-width:0}
.near h4{margin:0;font-size:.95rem;font-weight:600;overflow-wrap:anywhere}
.near p{margin:.15rem 0;font-size:.82rem;color:var(--soft);overflow-wrap:anywhere}
.near blockquote{font-size:.86rem;max-height:9.5rem;overflow:auto}
.fill{display:inline-block;width:4.5rem;height:.5rem;border-radius:.25rem;background:var(--line);
overflow:hidden;vertical-align:.1em;margin-right:.4rem}
.fill i{display:block;height:100%;background:rgb(var(--for))}
.track{position:relative;display:inline-block;width:100%;min-width:9rem;height:1rem;
vertical-align:middle;background:linear-gradient(var(--line),var(--line)) 0 50%/100% 2px no-repeat}
.track i{position:absolute;top:50%;width:.7rem;height:.7rem;border-radius:50%;
transform:translate(-50%,-50%);background:var(--soft)}
.track .after{background:rgb(var(--for))}.track.lower .after{background:rgb(var(--against))}
.track .way{height:3px;border-radius:2px;transform:translateY(-50%);background:rgb(var(--for)/.5)}
.track.lower .way{background:rgb(var(--against)/.5)}
ins{text-decoration:none;background:rgb(var(--for)/.2);border-radius:.2em}
del{text-decoration:line-through;text-decoration-color:rgb(var(--against)/.7);
background:rgb(var(--against)/.16);border-radius:.2em}
.facing{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:1.4rem}
.facing article{background:var(--card);border:1px solid var(--line);border-radius:.7rem;
padding:1rem 1.3rem 1.3rem;min-width:0}
.facing h3{margin:.1rem 0 .6rem}.facing .verse{font-size:1.04rem}
.facing .leaf{grid-template-columns:minmax(0,1fr);gap:.5rem 0}
.chip{display:inline-block;border:1px solid var(--line);border-radius:1rem;padding:.1rem .7rem;
margin:0 .4rem .4rem 0;font-size:.86rem;background:var(--card)}
.chip.amplify{border-color:rgb(var(--for))}.chip.suppress{border-color:rgb(var(--against))}
@media (max-width:52rem){.leaf,.facing{grid-template-columns:minmax(0,1fr)}
.gloss{padding-top:.5rem}.verse{font-size:1.04rem}}
"""
