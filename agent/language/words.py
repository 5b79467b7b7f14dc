"""Every word that the agent says itself, in both languages. What a model writes never comes from here."""

from typing import Final

from core.records import Language

_WORDS: Final[dict[str, dict[Language, str]]] = {
    "refusal": {
        "en": "I could not find an answer to this in the documents you can read.",
        "zh": "在您可以查阅的文档中，没有找到这个问题的答案。",
    },
    "unsupported": {
        "en": "{sentence} (Not found in the documents.)",
        "zh": "{sentence}（文档中未找到依据。）",
    },
    "no_documents": {
        "en": "Nothing in the documents you can read has to do with this question.",
        "zh": "您可以查阅的文档中，没有与这个问题相关的内容。",
    },
    "missing": {
        "en": "None of the passages that came closest mentions {words}.",
        "zh": "最接近的几段内容都没有提到{words}。",
    },
    "greeting": {
        "en": "Hello! Ask me about your organisation's documents; I answer with the passages that say so.",
        "zh": "您好！请就单位的文档提问，我会依据原文回答，并注明出处。",
    },
    "thanks": {
        "en": "You are welcome. Ask whenever there is something else to look up.",
        "zh": "不客气，有其他要查的内容请随时提问。",
    },
    "identity": {
        "en": "I am Intramuros, an assistant that runs entirely within your organisation. I search the documents you "
        "may read and answer with numbered sources; where they do not say, I tell you so.",
        "zh": "我是 Intramuros，完全在贵单位内部运行的知识助手。"
        "我检索您有权查阅的文档，回答时逐句注明出处；文档没有写明的，我会如实告知。",
    },
    "goodbye": {
        "en": "Goodbye, and come back whenever you like.",
        "zh": "再见，欢迎随时再来。",
    },
    "status_reading": {
        "en": "Reading your question together with what was said before",
        "zh": "正在结合前文理解问题",
    },
    "status_searching": {"en": "Searching the documents", "zh": "正在检索文档"},
    "status_again": {"en": "Searching again for “{query}”", "zh": "换一种说法再次检索：“{query}”"},
    "status_judging": {"en": "Reading {count} from {titles}", "zh": "正在阅读{titles}中的{count}"},
    "passages": {"en": "{n} passages", "zh": "{n}段内容"},
    "passage": {"en": "1 passage", "zh": "1段内容"},
    "status_exploring": {"en": "Looking further in the documents", "zh": "正在进一步查找文档"},
    "status_topics": {
        "en": "Looking into {n} questions, beginning with “{first}”",
        "zh": "正在分头查找{n}个问题，从“{first}”开始",
    },
    "status_peer": {
        "en": "Asking {name}, as the documents here do not say",
        "zh": "本库文档没有写明，正在查询{name}",
    },
    "peer_failed": {
        "en": "The intranet search could not be asked.",
        "zh": "未能查询内网搜索。",
    },
    "status_outlining": {
        "en": "Planning the brief from what was found",
        "zh": "正在根据找到的内容拟定简报提纲",
    },
    "status_section": {
        "en": "Writing “{heading}”",
        "zh": "正在撰写“{heading}”",
    },
    "status_answering": {"en": "Answering from {titles}", "zh": "正在依据{titles}作答"},
    "waiting": {
        "en": "An answer was found. It cites documents of {collections} and is shown here once somebody approved it.",
        "zh": "已找到答案。由于引用了{collections}中的文档，须经批准后才会在此显示。",
    },
    "approved": {"en": "Approved with this note: {reason}", "zh": "已批准，并附说明：{reason}"},
    "rejected": {"en": "This answer was not approved: {reason}", "zh": "该答案未获批准：{reason}"},
    "out_of_reach": {
        "en": "a document that it cites was deleted, or you may not read it any more.",
        "zh": "所引用的文档已被删除，或您已无权查阅。",
    },
    "out_of_time": {
        "en": "The time allowed for one question ran out, so this may be incomplete.",
        "zh": "已达到单个问题的时间上限，内容可能不完整。",
    },
    "out_of_tokens": {
        "en": "The tokens allowed for one question were used up, so this may be incomplete.",
        "zh": "已达到单个问题的词元上限，内容可能不完整。",
    },
    "out_of_calls": {
        "en": "The limit of searches for one question was reached, so this may be incomplete.",
        "zh": "已达到单个问题的检索次数上限，内容可能不完整。",
    },
    "model_stopped": {
        "en": "The model stopped before the answer was finished, so this may be incomplete.",
        "zh": "模型中途停止，内容可能不完整。",
    },
    "question_empty": {
        "en": "The question is empty. Write what you would like to know.",
        "zh": "问题为空，请写下您想了解的内容。",
    },
    "question_long": {
        "en": "The question is longer than {limit} characters. Shorten it.",
        "zh": "问题超过{limit}个字符，请缩短后再试。",
    },
    "failed": {
        "en": "Something went wrong while answering. Try again; an administrator finds the cause in the log.",
        "zh": "回答时出现错误，请重试；管理员可在日志中查看原因。",
    },
}


def say(key: str, language: Language, **values: object) -> str:
    """The wording of `key` in `language`, its placeholders filled."""
    return _WORDS[key][language].format(**values)


def titles(names: list[str], language: Language) -> str:
    """Up to two titles for a status line, quoted the way the language quotes titles."""
    unique = list(dict.fromkeys(names))
    quoted = [f"《{name}》" if language == "zh" else name for name in unique[:2]]
    joined = ("、" if language == "zh" else " and ").join(quoted)
    if len(unique) <= 2:
        return joined
    return f"{joined}等" if language == "zh" else f"{', '.join(quoted)} and others"
