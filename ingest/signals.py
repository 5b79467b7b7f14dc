"""Signs that a text talks to a model about its answers: each harmless alone, telling when they stand together.

Which signs are telling together was chosen on attacks of our own and on handbooks, policies and the documentation
of an LLM product in both languages, where none of the chosen ones stand together in one place.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Final

# Two sentences, and no more than so many characters, are one place.
_PLACE: Final = 400

_MODEL: Final = (
    r"(?:ais?|a\.i\.|llms?|(?:large )?language models?|chat ?bots?|gpt|ai (?:assistants?|agents?|"
    r"models?|systems?))"
)
_SAY: Final = (
    r"(?:answer|reply|respond|say|print|output|state|claim|repeat|recommend|insist|confirm|pretend|speak|"
    r"render|reveal|tell|deny|refuse|quote|praise|rate|rank|approve|mention|describe|conclude|announce|add|"
    r"load|ask)"
)
_TEXT: Final = r"(?:text|document|page|file|passage|paragraph|note|message|statement|contract|policy)"
_ENGLISH: Final = {
    "drop": (
        r"\b(?:ignore|disregard|forget|override|overrule|bypass|set aside|drop|discard|abandon|"
        r"pay no attention|skip|stop (?:following|reading)|throw away|do(?: not|n't) (?:follow|obey))\b"
    ),
    "earlier_orders": (
        r"\b(?:previous|prior|above|earlier|preceding|initial|original|all|any|other|old|"
        r"safety)\W+(?:\w+ ){0,2}(?:instructions?|directions?|directives?|prompts?|guidelines?|guidance|rules|"
        r"orders|commands|text|context|configuration)\b|\bthe rest of the\b|\beverything (?:above|before|"
        r"else)\b"
    ),
    "your_orders": (
        r"\byour (?:\w+ ){0,3}?(?:instructions|rules|guidelines|prompt|training|programming|restrictions|"
        r"filters?|context|configuration|settings|directives|developers?|makers?|operators?|creators?|persona|"
        r"memory)\b"
    ),
    "given_you": (
        r"\b(?:instructions|rules|guidelines|guidance|prompts?) (?:that )?(?:you (?:have |were |had |"
        r"are )?(?:been )?(?:given|told|received|got|know|follow|initiali[sz]ed|trained)|(?:that )?(?:were |"
        r"was )?given to you)\b|\b(?:what|whatever|everything) (?:that )?you (?:were|have been|are|"
        r"had been) (?:told|taught|given|trained)\b"
    ),
    "system_prompt": r"\bsystem (?:prompt|message|instructions?)\b|\bdeveloper (?:message|mode)\b|\bcontext window\b",
    "model": rf"\b{_MODEL}\b",
    "assistant": r"\b(?:assistant|chatbot|bot|ai agent)\b",
    "model_must": (
        rf"\b(?:(?:the|an?|any|every|this|it|all) )?(?:{_MODEL}|assistant|bot|model) (?:(?:that|who|which|"
        rf"reading|processing) (?:\w+ ){{0,4}})?(?:must|shall|should|has to|have to|is to|are to|(?:is|"
        rf"are) required to|will|may) (?:\w+ ){{0,1}}?{_SAY}\b"
    ),
    "vocative": (
        rf"\b(?:hey|hello|dear|attention,?|listen,?|note to|message (?:to|for)|to) (?:the |any |"
        rf"all )?(?:{_MODEL}|assistants?|model|bot|automated readers?)\b|(?:, |^|[.!?] )(?:assistant|model|"
        rf"ai)\b[.!,]|\b(?:for|to) the (?:model|ai|assistant|summari[sz]er|bot)\s?[:,]|"
        rf"\byou are an? (?:machine|model|ai|bot)\b|\bassistant instructions\b|\b(?:automated|machine|ai|"
        rf"llm) readers?\b|\b{_MODEL} (?:instructions?|note|directive|command|only)\b"
    ),
    "user": r"\bthe users?\b|\b(?:anyone|everyone) who (?:asks|chats)\b|\bthe person (?:you|who asks)\b",
    "asked": (
        r"\bwho(?:ever)? (?:asks|chats|talks to you)\b|\bwhen(?:ever)? (?:you quote|this \w+ is (?:retrieved|"
        r"read|quoted|found))\b|\bbefore (?:answering|replying)\b|\b(?:any|every|some)(?:one|body) asks\b|"
        r"\b(?:no matter|whatever|regardless)\b.{0,30}\b(?:ask(?:s|ed)?|questions?)\b|"
        r"\bwhen (?:you are )?asked\b|\busers? asks?\b|\b(?:any|every|each|all)(?: \w+){0,2} questions?\b|"
        r"\bbefore you (?:answer|reply|respond)\b|\bwhen (?:you )?(?:answer|summari[sz]|generat|respond|"
        r"reply)\w*\b"
    ),
    "order": (
        rf"(?:^|[.!?:;,]\s|\band |\bthen |\binstead,? |\bplease |\balways |\bonly |\bmust |\bshall |\bnever |"
        rf"\byou (?:will|must|shall|should) (?:now |always |only )?|\bto ){_SAY}\b"
    ),
    "your_answer": (
        r"\byour (?:\w+ )?(?:answers?|responses?|repl(?:y|ies)|outputs?)\b|\bin (?:the|each|every) (?:reply|"
        r"answer|response)\b|\b(?:sentence|word)s? (?:that )?you write\b|\bthe answer is always\b|\b(?:every|"
        r"each|all) (?:answers?|responses?|repl(?:y|ies)|conversations?)\b"
    ),
    "nothing_else": (
        r"\bnothing (?:else|but)\b|\b(?:only|just|exactly) (?:with |the )*(?:word|string|text|phrase|sentence|"
        r"[\"“'])|\bwith [\"“'][^\"”']+[\"”'] to\b|\bonly what i\b|\bonly (?:in )?[\"“']"
    ),
    "you_now": (
        r"\byou are (?:now|no longer|an? \w+ now)\b|\byou will (?:now|henceforth)\b|\bfrom (?:now|here|"
        r"this (?:point|moment))(?: on| onwards?| forward)\b|\byou have been (?:re\w+|\w+broken|changed|"
        r"updated)\b|\bnow that you have\b|\byour name is\b"
    ),
    "persona": (
        r"\b(?:pretend|act as|behave (?:as|like)|simulate|role ?-?play|in the (?:voice|style|persona|role|"
        r"manner) of|(?:speak|answer|respond|reply) as|stop being|impersonate)\b"
    ),
    "conceal": (
        r"\b(?:do(?: not|n't)|never|under no circumstances|must not|may not|should not|"
        r"without) (?:\w+ ){0,2}?(?:tell|mention|reveal|let|show|disclos|inform|indicat|say|telling|"
        r"mentioning)\w*\b|\bhide\b"
    ),
    "this_text": rf"\b(?:this|these|the following) {_TEXT}s?\b",
    "secret": r"\b(?:secret|hidden|invisible|confidential|concealed)\b",
    "talk": (
        r"\b(?:conversation|chat history|this (?:chat|session)|user'?s? (?:question|query)|retrieved|context|"
        r"the (?:question|query))\b"
    ),
    "outrank": (
        r"\b(?:no longer appl\w+|void|suspended|switched off|disabled?|replaces? them|outranks?|priority|"
        r"more important than|supersedes?|takes precedence|overrides?|a mistake)\b"
    ),
    "new_task": (
        r"\b(?:real|true|sole|secret|actual) (?:task|goal|instructions?|orders?|directives?|role|identity|"
        r"mission|purpose)\b|\bnew (?:orders|directives?|persona|identity)\b"
    ),
    "reveal": (
        r"\b(?:reveal|dump|leak|expose|repeat|word for word|verbatim|disclose)\b|\b(?:print|output|list|"
        r"show) (?:your|the (?:text|words|contents?)|all)\b"
    ),
    "secrets": (
        r"\b(?:passwords?|credentials|salar(?:y|ies)|payroll|admin|api keys?|credit card|"
        r"confidential documents)\b"
    ),
    "other_sources": r"\bother (?:retrieved )?(?:passages?|sources)\b",
    "author": r"\b(?:operator|developers?|creator|author of this|makers?|obey|comply)\b",
    "no_limits": (
        r"\b(?:unrestricted|jailbr\w+|dan|(?:no|without)(?: any)? (?:\w+ )?(?:limits|restrictions|rules|"
        r"filters)|never refuses?|permission to|speak freely)\b|\b(?:break the rules|i allow you)\b"
    ),
}

_ZH_MODEL: Final = r"(?:ai|人工智能|大?语言模型|大模型|llm|gpt|(?:聊天)?机器人|智能助手)(?:模型|助手|代理|系统)?"
_ZH_SAY: Final = (
    r"(?:回答|回复|答复|输出|打印|说明?|声明|声称|承认|确认"
    r"|推荐|拒绝|透露|重复|告诉|引用|称赞|批准|写|描述|补充|展示|宣布|结尾)"
)
_CHINESE: Final = {
    "drop": (
        r"忽略|无视|忘记|忘掉|抛开|抛弃|放弃|丢弃|别再看|不要理会|别管|不用管|覆盖|覆写|绕过|跳过|"
        r"放下|推翻|不[要用必]再?(?:遵守|遵循|服从|听从|执行|使用)|停止"
    ),
    "earlier_orders": (
        r"(?:以上|上述|上面|之前|先前|此前|前面|原有|原来|所有|全部|一切|系统|安全).{0,8}?(?:指令|"
        r"指示|规则|提示词?|设定|命令|准则|约束|上下文|训练|指导|配置)|(?:之前|"
        r"此前|先前)的任何说明|其余搜索结果"
    ),
    "your_orders": r"你的?.{0,6}?(?:指令|规则|提示词|设定|准则|训练|限制|上下文|内部|过滤|配置|制造者|开发者)",
    "given_you": r"给你的|你(?:一开始|之前|先前)?(?:被告知|收到|得到|知道)|要求你",
    "system_prompt": r"系统(?:提示|消息|指令|设定)|开发者(?:消息|模式)",
    "model": _ZH_MODEL,
    "assistant": r"助手|机器人|代理",
    "model_must": rf"(?:{_ZH_MODEL}|助手)(?:必须|应当?|须|请|要|只能|都)(?:把|将)?.{{0,6}}{_ZH_SAY}",
    "vocative": (
        rf"(?:嘿|喂|致|给|亲爱的|对).{{0,8}}?(?:{_ZH_MODEL}|模型|助手|自动阅读程序)|(?:^|"
        rf"[。!?！？]\s*)(?:请)?(?:{_ZH_MODEL}|助手|"
        rf"模型)(?:们)?[,!:]|(?:{_ZH_MODEL})(?:请)?注意|(?:{_ZH_MODEL}|助手)(?:指令|命令|阅读|读者)|"
        rf"给(?:模型|摘要程序|助手)的|"
        rf"你是(?:一台)?机器|收录本页的"
    ),
    "user": r"用户|提问者|每个来问的人|与你聊天的|与你(?:正在)?对话的人",
    "asked": (
        r"(?:无论|不管|不论).{0,8}(?:问|什么|谁)|来问的人|(?:每当|当)检索到|(?:回复|"
        r"回答)(?:任何问题)?之前|引用本|有人问|用户(?:问|询问)|(?:所有|一切|任何|"
        r"每个).{0,8}问题|回答(?:之前|时|中)|生成回答|总结时"
    ),
    "order": rf"(?:^|[,。!?:;，！？：；]\s*|并|请|只|都|就|必须|应|直接|永远|从不|一律|你){_ZH_SAY}",
    "your_answer": (
        r"你的(?:回答|回复|答复|输出)|(?:每次|所有|本次|以后的|在).{0,2}(?:回答|回复|对话)|你的回答|"
        r"答案永远是|你写的每|在回答中|回答的?(?:最后|末尾|里|中)"
    ),
    "nothing_else": r"(?:只|仅|都|一律|直接).{0,3}(?:回复|回答|输出|说)|什么也不要|不要输出其他|只用我",
    "you_now": r"你现在|你不再|现在由我|从(?:现在|此刻|此时|这里|这一刻)(?:起|开始)|你已被|既然你已|你的名字",
    "persona": r"扮演|充当|假装|假扮|模拟|身份回答|口吻|角色",
    "conceal": (
        r"(?:不要|不得|不可|切勿|绝不|不能|禁止).{0,3}(?:告诉|让|向|对|提及|透露|说明|提到)|保密|略去|"
        r"隐藏来源"
    ),
    "this_text": r"(?:本|这|此|该)(?:段|条|句|份|篇|个)?(?:文字|文件|文档|页|合同|话|说明|内容|制度|提示)",
    "secret": r"隐藏|秘密|机密|不可见",
    "talk": r"对话|会话|聊天|搜索结果|用户的?(?:问题|提问)|检索|提问",
    "outrank": r"不再适用|作废|无效|暂停|已关闭|优先|更重要|取代|高于|是错误的",
    "new_task": r"(?:真正|唯一|真实|秘密)的?(?:任务|指令|命令|目标|身份)|新(?:的)?(?:指令|命令|人设|身份)",
    "reveal": r"(?:打印|输出|泄露|透露|说出|贴出|逐字|原封不动|列出|原文)",
    "secrets": r"密码|凭据|工资|信用卡|机密文件|管理员|密钥",
    "other_sources": r"其[他它](?:检索到的)?(?:段落|来源)|其余搜索结果",
    "author": r"运营方|开发者|制造者|指挥你|作者|服从|听从",
    "no_limits": (
        r"没有.{0,4}(?:限制|规则|约束)|不受(?:限制|约束)|越狱|dan|从不拒绝|有权|畅所欲言|违反公司规则|"
        r"允许你|不许拒绝"
    ),
}

# Signs that are telling together, one combination a line.
_TOGETHER: Final = """
    drop system_prompt
    drop vocative
    drop persona
    drop other_sources
    drop no_limits
    drop earlier_orders order
    drop earlier_orders outrank
    earlier_orders given_you
    earlier_orders vocative
    earlier_orders nothing_else
    your_orders given_you
    your_orders vocative
    your_orders no_limits
    your_orders reveal order
    given_you model
    given_you assistant
    given_you vocative
    given_you persona
    given_you outrank
    given_you new_task
    given_you no_limits
    system_prompt you_now
    system_prompt this_text
    system_prompt no_limits
    system_prompt vocative
    assistant you_now
    assistant no_limits
    assistant user this_text
    model_must vocative
    model_must asked
    this_text model_must
    conceal vocative
    this_text vocative
    secret vocative
    new_task vocative
    nothing_else you_now
    you_now persona
    you_now no_limits
    you_now new_task
    other_sources this_text
    talk other_sources
    other_sources order
    author no_limits
    new_task order
    conceal user this_text
"""
_TOGETHER_IN_ENGLISH: Final = """
    drop given_you
    given_you reveal
    no_limits model
    outrank vocative
    secrets vocative
    nothing_else order
    persona no_limits
    your_orders system_prompt
    nothing_else asked
    nothing_else your_answer
"""
_TOGETHER_IN_CHINESE: Final = """
    no_limits order
    drop your_orders
    your_orders author
"""

# What a combination amounts to: the first sign of these that is in it.
_CODES: Final = {
    "conceal": "hide_from_user",
    "reveal": "exfiltrate",
    "secrets": "exfiltrate",
    "persona": "role_change",
    "you_now": "role_change",
    "drop": "ignore_instructions",
    "earlier_orders": "ignore_instructions",
    "given_you": "ignore_instructions",
    "your_orders": "ignore_instructions",
    "no_limits": "ignore_instructions",
    "outrank": "ignore_instructions",
    "vocative": "addresses_model",
    "model_must": "addresses_model",
    "model": "addresses_model",
}

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_ZH_SENTENCE: Final = re.compile(r"(?<=[.!?。])\s*|\n+")


def telling(lines: str, *, chinese: bool) -> str | None:
    """The code of signs that stand together in one place of a folded text, None when none do."""
    found = _telling(lines, *_english(ascii_only=lines.isascii()), _SENTENCE)
    return found or (_telling(lines, *_chinese(), _ZH_SENTENCE) if chinese else None)


_Signs = Mapping[str, re.Pattern[str]]
_Sets = tuple[tuple[str, ...], ...]


def _telling(lines: str, signs: _Signs, together: _Sets, sentence: re.Pattern[str]) -> str | None:
    # Most texts end here: whatever is not in the whole is in no place of it.
    possible = _within(lines, signs, together)
    if not possible:
        return None
    wanted = {name: signs[name] for combination in possible for name in combination}
    sentences = [part for part in sentence.split(lines) if part and part.strip()]
    places = (" ".join(sentences[at : at + 2])[:_PLACE] for at in range(len(sentences)))
    found = next((within[0] for place in places if (within := _within(place, wanted, possible))), None)
    return _code(found) if found else None


def _within(text: str, signs: _Signs, together: Iterable[tuple[str, ...]]) -> _Sets:
    @cache
    def present(name: str) -> bool:
        return signs[name].search(text) is not None

    # In the order written: what is quick to look for and rare comes first in each combination.
    return tuple(combination for combination in together if all(map(present, combination)))


def _code(combination: tuple[str, ...]) -> str:
    return next((code for sign, code in _CODES.items() if sign in combination), "answer_only")


@lru_cache(maxsize=2)
def _english(*, ascii_only: bool) -> tuple[_Signs, _Sets]:
    return _compiled(_ENGLISH, re.A if ascii_only else re.U), _sets(_TOGETHER + _TOGETHER_IN_ENGLISH)


@lru_cache(maxsize=1)
def _chinese() -> tuple[_Signs, _Sets]:
    return _compiled(_CHINESE, re.U), _sets(_TOGETHER + _TOGETHER_IN_CHINESE)


def _compiled(signs: Mapping[str, str], letters: re.RegexFlag) -> _Signs:
    return {name: re.compile(pattern, re.M | letters) for name, pattern in signs.items()}


def _sets(combinations: str) -> _Sets:
    return tuple(tuple(line.split()) for line in combinations.splitlines() if line.strip())
