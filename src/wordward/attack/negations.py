"""Words that negate, in the languages that people use most, and whether a word is one of them."""

import re
import unicodedata

from wordward.explain.english import fold

# All are read together, whatever the language of a text. Words that are ordinary and frequent in other languages are
# not here (German "noch", Spanish "en"), nor negations that are part of a word (Turkish -me-, most Czech ne-).
_BY_LANGUAGE = {
    "English": """
    no not never none nothing nobody neither nor nowhere without cannot hardly barely scarcely seldom rarely t n't
    don didn doesn isn aren wasn weren hasn haven hadn couldn wouldn shouldn mustn needn ain
    don't didn't doesn't isn't aren't wasn't weren't hasn't haven't hadn't can't couldn't won't wouldn't shouldn't
    mustn't needn't ain't
    """,
    "German": """
    nicht kein keine keinen keinem keiner keines keinerlei nie niemals nimmer nichts niemand niemanden niemandem
    nirgends nirgendwo ohne weder kaum nein keinesfalls keineswegs nö nix
    """,
    "French": "ne pas jamais rien aucun aucune aucunement ni nul nulle nullement guère",
    "Spanish": "nunca jamás nadie ningún ninguno ninguna nada ni tampoco",
    "Portuguese": "não nunca jamais ninguém nenhum nenhuma nada nem sem tampouco",
    "Italian": "mai nessun nessuno nessuna niente nulla né senza neanche nemmeno neppure mica",
    "Romanian": "nu niciodată nimic nimeni fără nici niciun nicio",
    "Dutch": "niet geen nooit niets niks niemand nergens zonder nauwelijks nee",
    "Swedish, Danish, Norwegian, Icelandic": """
    inte ej icke aldrig ingen inget inga ingenting utan nej ikke aldri intet uden uten nei hverken verken ikkje
    ekki aldrei
    """,
    "Polish": """
    nie nigdy nic niczego nikt nikogo nigdzie bez ani żaden żadna żadne żadnego żadnej żadnych brak
    """,
    "Czech, Slovak": """
    ne není nejsou nejsem nikdy nic nikdo bez ani nelze žádný žádná žádné nemá nemám nebyl nebyla nebylo nebude nemůže
    nie nič nikto žiadny žiadna žiadne nebol nebola nebolo
    """,
    "Croatian, Serbian, Slovenian": """
    nije nisu nisam niko nitko ništa nikada nikad nema nemoj niti brez nič ни није нису нисам нико ништа никад никада
    нема
    """,
    "Hungarian": "nem ne nincs nincsenek sem soha semmi senki nélkül",
    "Finnish": "ei eivät emme eikä älä ilman koskaan",
    "Russian": """
    не ни нет никогда ничего ничто никто никого никому нигде никуда никак никакой никакая никакие никакого никаких
    нельзя нечего некого без едва
    """,
    "Ukrainian, Bulgarian": """
    не ні ніколи нічого ніхто нікого ніде немає нема ані жоден жодна жодного жодних без няма никога нищо никой нито
    """,
    "Greek": "δεν δε μη μην όχι χωρίς δίχως κανένας καμία κανένα κανείς ποτέ τίποτα ούτε",
    "Turkish": "değil değildi değilim yok yoktu hiç hiçbir hayır asla olmaz olmadı",
    "Indonesian, Malay": "tidak bukan jangan belum tanpa tiada nggak gak enggak",
    "Vietnamese": "không chưa đừng",
    "Arabic": "لا لم لن ليس ليست لست ليسوا ما غير بدون بلا دون عدم ولا ولم ولن مش أبدا أبداً",
    "Hebrew": "לא אין אינו אינה אינם אינני בלי ללא בלתי מעולם",
    "Persian, Urdu": "نه نیست نیستم نبود هیچ هرگز نہیں نہ مت",
    "Hindi, Marathi, Bengali, Tamil": "नहीं नही ना न मत बिना नाही नको না নেই নয় இல்லை",
    "Chinese": """
    不 没 沒 無 无 未 别 別 非 勿 否 不是 不会 不會 不能 不要 不想 不再 不好 不用 不必 不可 不行 并不 並不 从不 從不
    绝不 没有 沒有 无法 無法 毫无 毫無 从未 從未 未必 未曾 尚未 并非 並非 请勿 請勿
    """,
    "Japanese": "ない なく なかっ なかった なければ なし 無い 無し ません いいえ 決して",
    "Korean": """
    안 못 않 없 없다 없는 없이 없고 없어 없어요 없습니다 없음 않다 않은 않는 않고 않아 않아요 않습니다 아니 아니다
    아닌 아니라 아닙니다 못한 못해 못하는 전혀
    """,
    "Thai": "ไม่ มิ อย่า ไร้",
}
# Negations elsewhere that are other words in English: Spanish, Italian, French, Latvian, Filipino.
_NOT_IN_ENGLISH = "sin non sans plus n nav hindi"


def _read(word: str) -> str:
    """A word in lower case, each of its accents one character with its letter; also of a Turkish capital."""
    return unicodedata.normalize("NFC", fold(word)).replace("i\u0307", "i")


def _both(words: str) -> frozenset[str]:
    """Words of a list as they are, and as they are written without accents."""
    read = [_read(word) for word in words.split()]
    return frozenset(read) | {re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", word)) for word in read}


NEGATIONS = _both(" ".join(_BY_LANGUAGE.values()))
_ELSEWHERE = NEGATIONS | _both(_NOT_IN_ENGLISH)
_ELIDED = re.compile(r"n'[aehiouyéêèâàô]\w*")  # French: n'est


def negates(word: str, *, english: bool = True) -> bool:
    """Whether a word negates; `english`: whether the texts are, in which "sin" and "plus" are other words."""
    read = _read(word)
    return read in (NEGATIONS if english else _ELSEWHERE) or _ELIDED.fullmatch(read) is not None
