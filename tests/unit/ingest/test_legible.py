"""What counts as a text layer that says something."""

import random

import pytest

from ingest.legible import legible

ENGLISH = "Hotels are booked by the travel desk, which keeps a list of houses that have agreed to our prices."
SIMPLIFIED = (
    "员工每年享有带薪年休假，具体天数按工作年限确定，不满一年的按比例折算。出差回来以后应在十天之内提交报销单。"
)
TRADITIONAL = (
    "員工每年享有帶薪年休假，具體天數按工作年限確定，不滿一年的按比例折算。出差回來以後應在十天之內提交報銷單。"
)
TEXTS = {
    "english": ENGLISH,
    "german": "Überstunden werden binnen drei Monaten durch Freizeit ausgeglichen; fragen Sie die Verwaltung.",
    "polish": "Pracownikowi przysługuje prawo do corocznego, nieprzerwanego, płatnego urlopu wypoczynkowego.",
    "simplified chinese": SIMPLIFIED,
    "traditional chinese": TRADITIONAL,
    "japanese": "従業員は毎年有給休暇を取得する権利があり、その日数は勤続年数によって決まります。詳しくは人事部へ。",
    "russian": "Работник имеет право на ежегодный оплачиваемый отпуск, продолжительность которого зависит от стажа.",
    "figures": "2024 1,250.00 3,400.50 12.5 % 2025 1,300.00 3,600.75 13.1 % 2026 1,410.00 3,990.20 14.0 %",
    "codes": "FS-02 HR-11 IT-P-01 XK-77 TR-09 CO-04 BK-31 FIN-07 GDPR HTTPS SFTP XML TLS",
    "a form": "Name ______________ Date ______________ Signature ____________________________________ Place ________",
    "contents": "Leave .............................. 3\nTravel ............................. 7\nHotels ............ 9",
    "nothing": "",
    "a word": "Berlin",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_languages_figures_and_forms_are_legible(text: str) -> None:
    assert legible(text)


def shifted(text: str, by: int) -> str:
    return "".join(chr(ord(char) + by) for char in text)


def random_ideographs(count: int) -> str:
    return "".join(random.Random(7).choices([chr(code) for code in range(0x4E00, 0x9FA6)], k=count))


JUNK = {
    "a font's own numbering": " ".join(shifted(word, -29) for word in ENGLISH.split()),
    "private use": "".join(chr(0xE000 + index % 90) for index in range(60)),
    "replacement characters": ENGLISH.replace("e", "\ufffd").replace("t", "\ufffd").replace("s", "\ufffd"),
    "control characters": "\x05\x07\x0e\x11" * 20,
    "signs": "!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~" * 3,
    "consonants": "Htls r bkd by th trvl dsk whch kps lst f hss tht hv grd t r prcs. Prvt bkngs r nt pd.",
    "chinese at random": random_ideographs(80),
}


@pytest.mark.parametrize("text", JUNK.values(), ids=JUNK)
def test_signs_without_meaning_are_not(text: str) -> None:
    assert not legible(text)


def test_a_few_odd_characters_in_a_text_do_no_harm() -> None:
    assert legible(f"\uf0b7 {ENGLISH} \ufffd")


def test_a_handful_of_odd_characters_alone_is_junk() -> None:
    assert not legible("\ue000\ue001\ue002")
