"""Two sentences in each of forty languages, a statement and a question, as they are written there.

Sentences follow one another after `between`: nothing where a script wants no white space.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Language:
    """A statement and a question about a cold river."""

    name: str
    sentences: tuple[str, str]
    between: str = " "


LANGUAGES = [
    Language(name, (statement, question), *between)
    for name, statement, question, *between in (
        ("Afrikaans", "Die water is koud.", "Waar is die brug?"),
        ("Amharic", "ውሃው ቀዝቃዛ ነው።", "ድልድዩ የት ነው፧"),
        ("Arabic", "الماء بارد في النهر.", "أين الجسر؟"),
        ("Armenian", "Ջուրը սառն է։", "Կամուրջը այնտեղ է։"),
        ("Bengali", "নদীর জল ঠান্ডা।", "সেতুটা কোথায়?"),
        ("Bulgarian", "Водата е студена.", "Къде е мостът?"),
        ("Burmese", "ရေက အေးတယ်။", "တံတားက ဘယ်မှာလဲ။"),
        ("Chinese", "河水很冷。", "桥在哪里？", ""),
        ("Czech", "Voda je studená.", "Kde je most?"),
        ("Danish", "Vandet er koldt.", "Hvor er broen?"),
        ("Dutch", "Het water is koud.", "Waar is de brug?"),
        ("English", "The water is cold.", "Where is the bridge?"),
        ("Finnish", "Vesi on kylmää.", "Missä silta on?"),
        ("French", "L’eau est froide.", "Où est le pont ?"),
        ("Georgian", "წყალი ცივია.", "სად არის ხიდი?"),
        ("German", "Das Wasser ist kalt.", "Wo ist die Brücke?"),
        ("Greek", "Το νερό είναι κρύο.", "Πού είναι η γέφυρα\u037e"),
        ("Hebrew", "המים קרים.", "איפה הגשר?"),
        ("Hindi", "नदी का पानी ठंडा है।", "पुल कहाँ है?"),
        ("Hungarian", "A víz hideg.", "Hol van a híd?"),
        ("Icelandic", "Vatnið er kalt.", "Hvar er brúin?"),
        ("Indonesian", "Airnya dingin.", "Di mana jembatannya?"),
        ("Italian", "L’acqua è fredda.", "Dov’è il ponte?"),
        ("Japanese", "川の水は冷たい。", "橋はどこですか？", ""),
        ("Khmer", "ទឹកត្រជាក់។", "ស្ពាននៅឯណា?"),
        ("Korean", "물이 차갑다.", "다리는 어디에 있습니까?"),
        ("Lao", "ນ້ຳເຢັນຫຼາຍ", "ຂົວຢູ່ໃສ"),
        ("Persian", "آب سرد است.", "پل کجاست؟"),
        ("Polish", "Woda jest zimna.", "Gdzie jest most?"),
        ("Portuguese", "A água está fria.", "Onde fica a ponte?"),
        ("Russian", "Вода холодная.", "Где мост?"),
        ("Spanish", "El agua está fría.", "¿Dónde está el puente?"),
        ("Swahili", "Maji ni baridi.", "Daraja liko wapi?"),
        ("Swedish", "Vattnet är kallt.", "Var är bron?"),
        ("Tamil", "தண்ணீர் குளிராக உள்ளது.", "பாலம் எங்கே?"),
        ("Thai", "น้ำเย็นมาก", "สะพานอยู่ที่ไหน"),
        ("Tibetan", "ཆུ་གྲང་མོ་འདུག།", "ཟམ་པ་ག་པར་འདུག།"),
        ("Turkish", "Su soğuk.", "Köprü nerede?"),
        ("Urdu", "پانی ٹھنڈا ہے۔", "پل کہاں ہے؟"),
        ("Vietnamese", "Nước rất lạnh.", "Cây cầu ở đâu?"),
    )
]
