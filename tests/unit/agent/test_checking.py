import pytest

from agent.grounding.checking import check, on_the_subject, sounds_refused, speaks_of

PASSAGE = (
    "Travel policy\nHotel caps\nCity: Shanghai\nGrades P1 to M1: CNY 550 per night\n"
    "The Finance Director approves more. Claims are due within 30 calendar days; the record is kept for 24 months."
)


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("The hotel cap in Shanghai is CNY 550 per night.", None),
        ("The hotel cap in Shanghai is 550 yuan per night.", None),
        ("The hotel cap in Shanghai is CNY 560 per night.", "number"),
        ("The hotel cap in Shanghai is EUR 550 per night.", "unit"),
        ("The hotel cap in Shanghai is 550 tokens per night.", "unit"),
        ("Claims are due within thirty days.", None),
        ("The record is kept for 24 days.", "unit"),
        ("The Finance Director approves more.", None),
        ("The Managing Director approves more.", "name"),
        ("Lunch vouchers are handed to every visiting customer.", "words"),
        ("The passage does not specify the hotel cap.", "refusal"),
        ("...", "empty"),
    ],
)
def test_a_sentence_says_what_its_passage_says(sentence: str, fault: str | None) -> None:
    assert check(sentence, PASSAGE, "How much is it?").fault == fault


def test_numbers_and_names_of_the_question_may_be_repeated() -> None:
    assert check(
        "After 6 years in Oslo you have 25 days.", "Annual leave\n5 to 9 years: 25 days", "6 years in Oslo?"
    ).ok


def test_a_name_may_stand_in_the_section_around_the_passage() -> None:
    sentence, passage = "The hotel cap in Singapore is CNY 550 per night.", "Hotel caps: CNY 550 per night"
    assert check(sentence, passage, "How much?").fault == "name"
    assert check(sentence, passage, "How much?", "Caps in Singapore and Shanghai").ok


@pytest.mark.parametrize(
    ("sentence", "question", "expected"),
    [
        (
            "You get a home office allowance of EUR 400.",
            "How much relocation support is paid to move office?",
            False,
        ),
        (
            "You may accept a supplier's gift up to EUR 40.",
            "Up to what value in euros may I accept a gift from a supplier?",
            True,
        ),
        ("The cap is CNY 550.", "What may a bed cost?", True),
        ("住宿费上限为 550 元。", "What may a bed in Shanghai cost when travelling on business?", True),
    ],
)
def test_a_sentence_speaks_of_what_a_long_question_asks(sentence: str, question: str, expected: bool) -> None:
    assert speaks_of(sentence, question) is expected


def test_a_rule_about_one_thing_does_not_answer_for_another() -> None:
    passage = "Sick leave\nReturn to work: paid leave of up to 6 weeks after an operation"
    question = "How many weeks of paid leave does the main carer get after an adoption?"
    assert not on_the_subject("The main carer gets 6 weeks of paid leave after an adoption.", passage, question)
    assert on_the_subject("You get 6 weeks of paid leave.", passage, question)
    assert on_the_subject("The main carer gets 6 weeks after an adoption.", "收养假 6 周", question)


def test_even_a_certain_model_takes_one_thing_for_another() -> None:
    passage = "Grants 2026\nGrant: Boat fee | Unit: per trip from the pier | Oslo: EUR 5 | Lima: EUR 4"
    question = "How much does the ferry in Oslo charge for a boat?"
    taken = "The ferry in Oslo charges EUR 5 per trip from the pier."
    assert not on_the_subject(taken, passage, question, certain=True)
    said = "A boat in Oslo is charged EUR 5 per trip."
    assert on_the_subject(said, passage, question, certain=True)
    assert on_the_subject("The charge is EUR 5.", passage, question, certain=True)
    everyday = "P2 职级去奥斯陆出差，酒店每晚最多能报 90 元。"
    assert on_the_subject(
        everyday, "城市: 奥斯陆\n每晚不超过 90 元", "P2 职级去奥斯陆出差，酒店每晚最多能报多少？", certain=True
    )


@pytest.mark.parametrize("ordinal", ["1.", "(1)", "1)", "1、"])
def test_the_number_of_a_list_item_is_no_amount(ordinal: str) -> None:
    passage = f"Design\n{ordinal} Share your work early and often\nA new designer gets 2 lamps."
    assert check("A new designer receives 1 share.", passage, "How many shares does a new designer receive?").fault
    assert check("A new designer gets 2 lamps.", passage, "How many lamps?").ok
    assert check("It lasts 1.5 hours.", "1.5 hours is how long it lasts.", "?").ok


def test_a_bare_number_takes_its_unit_from_the_header() -> None:
    assert check("The cap in Berlin is 140 euros.", "Hotel caps in EUR\nCity: Berlin\nCap: 140", "?").ok
    assert check("The cap in Berlin is 140 days.", "Hotel caps in EUR\nCity: Berlin\nCap: 140", "?").fault == "unit"


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("上海每晚住宿费不超过 550 元。", None),
        ("上海每晚住宿费不超过五百五十元。", None),
        ("上海每晚住宿费不超过 650 元。", "number"),
        ("报销须在 30 个月内完成。", "unit"),
        ("段落未提及住宿费。", "refusal"),
        ("食堂周五供应各种海鲜。", "words"),
    ],
)
def test_chinese_sentences(sentence: str, fault: str | None) -> None:
    passage = "差旅管理办法\n住宿费标准\n上海：每晚住宿费不超过 550 元\n报销须在 30 个自然日内提交完成"
    assert check(sentence, passage, "住宿费多少？").fault == fault


def test_a_chinese_sentence_may_use_the_askers_words() -> None:
    passage = "差旅管理办法\n住宿费标准\n城市: 上海\nP1 至 M1 职级: 上海每晚不超过 550 元"
    question = "P2 职级去上海出差，酒店每晚最多能报多少钱？"
    assert check("P2 职级去上海出差，酒店每晚最多能报 550 元。", passage, question).ok
    assert check("P2 职级去上海出差，酒店每晚最多能报 750 元。", passage, question).fault == "number"


def test_across_languages_amounts_still_count() -> None:
    passage = "差旅管理办法\n上海每晚不超过 550 元，30 个自然日内报销"
    assert check("The cap in Shanghai is CNY 550 per night.", passage, "?").ok
    assert check("The cap in Shanghai is CNY 505 per night.", passage, "?").fault == "number"
    assert check("Claim within 30 months.", passage, "?").fault == "unit"


@pytest.mark.parametrize("sentence", ["This is not specified.", "No information is given.", "没有说明。", "无法确定。"])
def test_refusals_are_heard(sentence: str) -> None:
    assert sounds_refused(sentence)


def test_a_prohibition_is_no_refusal() -> None:
    assert not sounds_refused("Dogs are not allowed in the office.")
    assert not sounds_refused("不允许携带宠物。")


@pytest.mark.parametrize(
    ("sentence", "passage", "question"),
    [
        (
            "课酬全年上限 6,000 元。",
            "内部讲师每授课 1 小时，发放课酬 150 元，全年上限 6,000 元。",
            "内部讲师每小时课酬多少，全年上限多少？",
        ),
        ("导师带教为期 3 个月。", "每位新员工配一名导师，为期 3 个月。", "新员工的导师带多长时间？"),
    ],
)
def test_a_chinese_sentence_in_the_askers_own_words_is_not_judged_by_their_seams(
    sentence: str, passage: str, question: str
) -> None:
    assert check(sentence, passage, question).ok
