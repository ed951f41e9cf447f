"""Words that carry grammar rather than a subject, of English and of programming languages."""

_FUNCTION_WORDS = """
a about above after again against all almost along already also although always am among an and
any are around as at away back be became because become been before being below between both but
by came can cannot come could did do does doing done down during each either else enough even ever
every few first for from further get give given go had has hath have having he hence her here hers
herself him himself his how however i if in indeed instead into is it its itself just know last
least less let like made make many may me might mine more most much must my myself near neither
never next no none nor not nothing now of off often on once one only onto or other others ought
our ours out over own per perhaps quite rather really s said same say see shall she should since
so some such t take than that the thee their theirs them themselves then thence there therefore
these they thine thing things this those thou though three through thus thy till to together too
toward towards two under unless until up upon us use used uses using various very was way we well
went were what whatever when where whether which while who whom whose why will with within without
would ye yet you your yours yourself
"""
_CODE_WORDS = """
args assert async await bool break cls continue def del dict elif else except false finally float
global import int kwargs lambda len list none nonlocal pass raise return self set str super true
try tuple while with yield
"""

FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
CODE_WORDS = frozenset(_CODE_WORDS.split())
