"""Passages that read like orders to the model rather than words to the reader, in English and Chinese.

Rules look for who is addressed and what is asked, not for single words: handbooks speak of instructions, passwords and
assistants all day. What is quoted as an example, as security training does, passes. A flagged passage is not judged
to be an attack: an admin reads it and releases it. Nobody should rely on this alone; it is one wall of several.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from core.records import Chunk, ParseWarning
from core.text import fold
from ingest.signals import telling

# Letters of other scripts that read as Latin ones.
_LOOKALIKES: Final = str.maketrans(
    "авеіјкмпорсстухһѕԁԛԝӏαεικνορτυχ",
    "abeijkmnopcctyxhsdqwlaeiknoptux",
)
# Digits and signs that stand in for letters; i, l and 1 become one, as they are used for one another.
_LEET: Final = str.maketrans("013457@$!l", "oieastasii")
_HAN: Final = re.compile("[\u4e00-\u9fff]")
_SEPARATED: Final = re.compile(r"[\W_]+")
# Four words and more, joined as in the names of files.
_JOINT: Final = re.compile(r"[_\-.]+")
_NAME: Final = re.compile(r"[^\W_]+(?:[_\-.]+[^\W_]+){3,}")
_QUOTES: Final = "\"'“”‘’「」『』《》`´"
# What introduces an example: a match in quotes after it is spoken of, not said.
_REPORTED: Final = re.compile(
    r"(?:\b(?:words?|phrases?|text|sentences?|strings?|such as|like|e\.g\.|for example|says?|saying|writes?)|"
    r"例如|比如|诸如|譬如|隐藏|包含|写着|类似|字样|语句)[\s:：，,]*$"
)


def suspicion(text: str) -> str | None:
    """The code of what makes a text look like an instruction to the model, None for ordinary text.

    Width, case, letters of other scripts, digits in place of letters, and blanks between letters do not matter. Names
    of files are read as the words that they are made of.
    """
    lines = _NAME.sub(lambda name: _JOINT.sub(" ", name[0]), _folded(text))
    plain = " ".join(lines.split())
    spoken_of = False
    chinese = bool(_HAN.search(plain))
    for code, rule in _rules(chinese=chinese, ascii_only=plain.isascii()):
        view = lines if rule.flags & re.M else plain
        for match in rule.finditer(view):
            if not _reported(view, match):
                return code
            spoken_of = True
    if spoken_of:
        return None
    return "ignore_instructions" if _spelled_out().search(_compact(plain)) else telling(lines, chinese=chinese)


def suspicion_warnings(chunks: Sequence[Chunk]) -> list[ParseWarning]:
    """What a document's reader is told of its chunks that wait for an admin."""
    held = [chunk for chunk in chunks if chunk.suspicion]
    if not held:
        return []
    text = f"{len(held)} passages read like instructions to the model and wait for an admin."
    pages = sorted({chunk.page for chunk in held if chunk.page is not None})
    return [ParseWarning("instruction_like", text, len(held), tuple(pages))]


def _folded(text: str) -> str:
    """One form for matching, lines kept: width, case, script variants and accents folded."""
    if text.isascii():
        return text.lower()
    folded = fold(text).translate(_LOOKALIKES)
    plain = "".join(char for char in unicodedata.normalize("NFD", folded) if not unicodedata.combining(char))
    return plain.replace("’", "'")


def _compact(plain: str) -> str:
    """Letters only, stand-ins replaced."""
    return _SEPARATED.sub("", plain.translate(_LEET))


def _reported(view: str, match: re.Match[str]) -> bool:
    before = view[max(0, match.start() - 60) : match.start()]
    opening = max(before.rfind(quote) for quote in _QUOTES)
    after = view[match.end() : match.end() + 80]
    return opening >= 0 and bool(_REPORTED.search(before[:opening])) and any(quote in after for quote in _QUOTES)


# --- rules ------------------------------------------------------------------------------------------------------------

_DROP = (
    r"(?<!not )(?<!n't )(?<!never )(?:ignore|disregard|forget|override|overrule|bypass|discard|neglect|set aside|"
    r"pay no attention to|stop (?:following|obeying))"
)
_ORDERS = (
    r"(?:instructions?|directions?|directives?|prompts?|guidelines?|guidance|rules|orders|commands?|constraints?|"
    r"restrictions?)"
)
_EARLIER = r"(?:previous|prior|above|earlier|preceding|foregoing|initial|original|former|system)"
_MODEL = (
    r"(?:ais?|a\.i\.|llms?|(?:large )?language models?|chat ?bots?|gpt|ai (?:assistants?|agents?|models?|systems?))"
)
_TEXT = r"(?:text|document|page|file|passage|paragraph|note|message|instructions?)"

_ENGLISH: Final = {
    "fake_turn": (
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|begin_of_text|start_header_id|eot_id)\|>",
        r"\[/?inst\]|<<sys>>",
        r"</?(?:system|assistant)>",
        r"(?m)^\W*(?:system|developer)(?: message| prompt| instruction)?\s*[:>]\s*"
        r"(?:you (?:are|must|will|should)\b|override|ignore|disregard|new |from now|safety|comply|forget)",
        r"(?m)^\W*(?:user|human)\s*:[^\n]+\n+\W*(?:assistant|ai|bot)\s*:(?:\s*\S+){3}",
        r"(?m)^\W*(?:assistant|ai|bot)\s*:(?:\s*\S+){3}[^\n]*\n+\W*(?:user|human)\s*:",
        r"\bend of (?:document|context|passages?|prompt)\b.{0,30}\b(?:new|your) (?:task|instructions?)\b",
        r"\"role\"\s*:\s*\"system\"\s*,\s*\"content\"\s*:\s*\"(?:always|never|ignore)\b",
        r"(?m)^\W*instruction\s*:[^\n]*\n+\W*response\s*:",
        r"</(?:context|passages?|documents?)>.{0,60}\binstructions?\b",
    ),
    "ignore_instructions": (
        rf"\b{_DROP} (?:(?:all|any|of|the|these|those|your|my|every|each|other) ){{0,4}}{_EARLIER} "
        rf"(?:\w+ ){{0,2}}?{_ORDERS}\b",
        rf"\b{_DROP} (?:everything|anything|all|what) (?:that )?(?:is |was |comes |came )?(?:above|before this|"
        r"you (?:have been|were|are) told|you know|so far)",
        rf"\b{_DROP} (?:\w+ ){{0,3}}?(?:your|the) (?:\w+ ){{0,2}}?{_ORDERS} (?:that )?you\b",
        rf"\b{_DROP} (?:all |any |of |each )*your (?:\w+ )?{_ORDERS}\b",
        rf"\b{_DROP} (?:what |anything |everything )?(?:the |your )?system (?:prompt|message)\b",
        rf"\b{_DROP} the user'?s? (?:question|request|query|message|prompt)\b",
        rf"\bdo(?: not|n't) (?:follow|obey|comply with) (?:the |your )(?:operator|developer|system|creator)'?s?'? "
        rf"(?:\w+ )?{_ORDERS}",
        rf"\b(?:all|any) {_EARLIER} {_ORDERS} (?:are|is) (?:\w+ )?(?:void|cancelled|revoked|obsolete)\b.{{0,30}}"
        r"\b(?:your|you)\b",
        r"\b(?:outranks?|overrides?|supersedes?|replaces?|(?:has|have) priority over|takes? precedence over) "
        r"(?:the|your) (?:system prompt|system message|developer message)",
        r"\b(?:enter|activate|switch to|in) (?:developer|debug|god|jailbreak|maintenance|dan) mode\b.{0,50}"
        r"\b(?:your|system prompt)\b",
        rf"\b{_DROP} your (?:\w+ )?(?:training|programming)\b",
        r"\byour (?:previous|current|old) (?:configuration|persona|"
        r"instructions) (?:is|are) (?:obsolete|void|invalid|outdated)\b",
        r"\bdo not use the (?:context|passages)\b.{0,20}\binstead\b|\buse only what i (?:tell|say)\b",
        r"\bnot as your (?:makers|developers|creators)\b",
    ),
    "role_change": (
        r"\byou are now (?:\w+ ){0,4}?(?:ai|dan|bot|chatbot|language model|terminal|unrestricted|jailbroken|"
        r"assistant (?:with|who|that))\b",
        r"\byou are no longer (?:a|an|the|my|this) (?:\w+ ){0,3}?(?:assistant|ai|bot|chatbot|language model)\b",
        r"\bstop being (?:a|an|the) (?:\w+ ){0,3}?(?:assistant|ai|bot|chatbot|model)\b",
        r"\b(?:act|behave|respond|speak|answer) (?:as|like) (?:a|an|the|my) (?:\w+ ){0,3}?(?:ai|dan|language model|"
        r"(?:linux )?terminal|chatbot)\b(?! (?:policy|officer|team|lead))",
        r"\bpretend (?:that )?(?:you have|to have|there are) no (?:rules|restrictions|limits|guidelines|filters?)",
        r"\b(?:ai|assistant|model|bot) without (?:any )?(?:restrictions|rules|limits|policies|filters)\b",
        r"\b(?:you )?(?:will |must )?obey only (?:the author|me|this)\b",
        r"\bnew role ?play in which you\b",
        r"\byou have been (?:reprogrammed|reconfigured|jailbroken)\b",
        r"\byou are an? \w+ now\b.{0,40}\byou (?:write|say|answer)\b",
        r"\b(?:answer|reply|respond) in the (?:voice|persona|"
        r"character) of\b|\bfrom (?:now|here) on,? (?:you )?speak only\b",
    ),
    "hide_from_user": (
        r"\b(?:do not|don't|never|must not|should not)\b (?:\w+ ){0,3}?(?:tell|mention|reveal|inform|disclose|show)"
        rf"\b(?:\W+\w+){{0,6}}?\W+(?:the )?users?\b.{{0,30}}\b(?:this {_TEXT}|these {_ORDERS}|you (?:were|have|are))\b",
        rf"\b(?:do not|don't|never) (?:mention|reveal|disclose|show) this {_TEXT} to (?:the |any )?users?\b",
        rf"\bkeep this {_TEXT} (?:secret|hidden|confidential) from\b.{{0,40}}\b(?:user|you are talking|human)",
        rf"\b{_TEXT} (?:is|are) (?:invisible|hidden|not visible) (?:to|"
        rf"from) (?:humans?|users?|people|(?:the )?readers?)",
        r"\bhidden instructions? (?:for|to)\b",
        r"\bpresent (?:it|this|them) as your own knowledge\b",
        r"\b(?:do not|don't|never) (?:reveal|mention|disclose) these (?:rules|instructions) to\b",
        r"\bleave out\b.{0,60}\bdo not mention (?:the|this) (?:omission|gap)\b",
    ),
    "addresses_model": (
        rf"\bif you (?:are|'re) (?:an? )?(?:\w+ )?{_MODEL}\b",
        rf"\b(?:note|message|instructions?|attention|warning|notice|reminder) (?:to|for) (?:the |any |all )*{_MODEL}\b"
        r"(?! (?:polic|use|guid|train|ethic|system owner))\W",
        rf"^\W*(?:attention|dear|hello|hey) {_MODEL}\b|\bdear assistant\b",
        rf"\bif (?:an? |any |the )?{_MODEL} (?:\w+ )?(?:process|read|summari[sz]e|see|parse)(?:es|s)? (?:this|the)\b",
        rf"\bto (?:the|any|every) {_MODEL} (?:\w+ )?(?:reading|processing|summari[sz]ing)\b",
        rf"\b(?:for|to be read by) {_MODEL}s? only\b",
        rf"\bas an? {_MODEL}(?: model)?,? you (?:must|should|shall|will|have to|need to)\b",
        r"^\W*assistant, (?:when|if|please|you)\b|\b(?:note|message) (?:for|to) the summari[sz]er\b",
        r"\bif you can read this,? you are an? (?:machine|model|ai|bot)\b",
        r"\bthe assistant must \w+\b.{0,40}\bin its (?:response|reply|answer)\b",
    ),
    "exfiltrate": (
        r"\b(?:reveal|leak|expose|dump|repeat|print|output|show|display|tell me|write out) (?:\w+ ){0,4}?your "
        r"(?:\w+ )?(?:system prompt|initial prompt|hidden (?:rules|instructions|prompt)|system message|instructions)\b",
        r"\b(?:reveal|leak|expose|dump) (?:\w+ ){0,2}?(?:the )?(?:system prompt|context window|hidden (?:rules|"
        r"instructions|prompt)|contents? of your|prompt (?:that )?you)\b",
        r"\brepeat (?:the |all )?(?:words|text|everything|sentences) above\b|"
        r"\b(?:translate|print|output|repeat) (?:the |all )*(?:above|previous|preceding) instructions\b",
        r"\b(?:send|post|forward|transmit|upload|submit) (?:\w+ ){0,4}?(?:conversation|chat history|dialogue|"
        r"user'?s question|retrieved passages)\b.{0,40}\b(?:https?:|www\.|url\b|\w+@)",
        r"\b(?:include|insert|append|add|embed|place|put|encode)\b.{0,80}?(?:\byour (?:answer|response|reply|output)|"
        r"user'?s (?:question|query)|\bconversation|retrieved passages)\b.{0,60}?(?:https?:|!\[|\burl\b|\bbase64\b)",
        r"\b(?:your (?:answer|response|reply|output))\b.{0,80}?(?:!\[[^\]]*\]|\[[^\]]*\])\(https?:",
        r"!\[[^\]]*\]\(https?:[^)\s]*=[^)\s]*(?:\{|conversation|user_?question|chat_?history|secret)",
        r"\bask the user to (?:sign|log) in there\b|\btell the user that (?:their|the) (?:session|account).{0,40}"
        r"\b(?:must|has to|have to) enter (?:their|the|a) password\b",
        r"\bencode the (?:\w+ )?(?:passages|conversation|answer)\b.{0,40}\b(?:url|link)\b",
        r"\bsend (?:a |the )?(?:summary|copy|transcript) of this (?:chat|conversation)\b",
        r"\b(?:reply|answer|response)\b.{0,60}<img\b",
    ),
    "tool_request": (
        r"\bkb_(?:search|read_chunk|list_documents|outline|find)\b|</?tool_call>",
        r"\b(?:use|with|call|invoke) your (?:\w+ )?tools?\b.{0,40}\b(?:read|list|return|quote|documents?|records?|"
        r"collection|conversation|send)\b",
        r"\b(?:execute|call|invoke|run) the (?:function|tool) (?:delete|send|read|list|search|export)_\w+",
        r"\b(?:delete|send|export) (?:it|them|this) (?:with|using) the \w+ tool\b",
        r"\buse the search tool (?:\w+ times|with random)\b|\bfetch\b.{0,60}\bthrough search\b",
    ),
    "answer_only": (
        r"\b(?:whatever|no matter what|regardless of (?:what )?)\W*(?:the |"
        r"any )?(?:question|user|they|anyone)\b.{0,25}?"
        r"\b(?:reply|answer|respond|say|output)\b",
        r"\b(?:the )?only correct answer to (?:any|every|all) questions?\b",
        r"\b(?:respond|reply|answer)(?: only| just)?(?: with| by saying)? [\"'“‘][^\"'”’]{1,60}[\"'”’] (?:to|for) "
        r"(?:all|any|every|each)\b",
        r"\banswer (?:each|every|all|any) (?:\w+ ){0,2}?questions?\b(?: \w+){0,6} with [\"“']",
        r"\bfrom (?:now|this (?:point|moment)) (?:on|forward|"
        r"onwards?),? you (?:only |will |must |shall |are to )*(?:only )?"
        r"(?:reply|respond|answer(?! the (?:tele)?phone)|output|obey)\b",
        r"\byour (?:sole|only) (?:task|job|purpose) is to (?:output|reply|respond|answer|say|print)\b",
        r"\bwhen(?:ever)? (?:the |a )?users? asks?\b.{0,60}?,? (?:you )?(?:always|"
        r"must|only) (?:answer|reply|respond|say)"
        r"\b(?! (?:within|in|by)\b)",
        r"\bif any(?:one|body) asks?\b.{1,60}?\b(?:claim|pretend|deny|lie) that\b",
        r"\b(?:begin|start|end|finish|conclude) (?:every|each|your|all) (?:answers?|repl(?:y|ies)|responses?) with "
        r"(?:the (?:sentence|words?|phrase|link|text)|[\"“'])",
        r"\byour new instructions (?:are|follow)\b",
        rf"\bsummar(?:y|ies) of this {_TEXT} (?:must|should|shall|have to|has to) (?:say|state|mention|add)\b",
        rf"\bsummari[sz]es? this {_TEXT}\b.{{0,40}}\b(?:add|say|state) that\b",
        r"\bignore (?:all )?(?:the )?other (?:passages|documents|sources)\b",
        rf"\bonly this {_TEXT} is (?:trustworthy|to be trusted|correct)\b",
        r"\b(?:say|reply|answer|claim)\b.{0,60}\b(?:whoever asks|no matter (?:what|who) (?:is asked|asks))\b",
        r"\bwhen(?:ever)? this (?:passage|text|chunk|section) is retrieved\b",
        r"\bmake sure (?:that )?your (?:answer|response|reply) (?:contains|includes) the (?:phrase|words?|sentence)\b",
    ),
}

_ZH_DROP = (
    r"(?:忽略|无视|忘记|忘掉|抛开|抛弃|不要理会|别管|不用管|覆盖|绕过|推翻|"
    r"不要再?(?:遵守|遵循|服从|听从|执行)|停止(?:遵守|执行|遵循))"
)
_ZH_ORDERS = r"(?:指令|指示|要求|规则|提示词?|设定|命令|准则|约束)"
_ZH_MODEL = r"(?:ai|人工智能|大?语言模型|大模型|llm|gpt|(?:聊天)?机器人|智能助手)(?:模型|助手|代理|系统)?"
_ZH_TEXT = r"(?:本|这|此|该)(?:段|句|份|条|个|篇)?(?:文字|文本|文件|文档|页面?|话|内容|说明|指令|提示|消息)"

_CHINESE: Final = {
    "fake_turn": (
        r"(?m)^\W*(?:系统|开发者|system|developer)(?:指令|消息|"
        r"提示词?)?\s*[:\]】]\s*(?:你(?:现在|是|必须|将)|覆盖|忽略|从现在|"
        r"[^\n]{0,20}安全检查已关闭)",
        r"(?m)^\W*(?:用户|人类)\s*:[^\n]+\n+\W*(?:助手|ai|机器人)\s*:[^\n]{5}",
        r"(?m)^\W*(?:助手|ai|机器人)\s*:[^\n]{5,}\n+\W*(?:用户|人类)\s*:",
        r"(?:文档|上下文|文件)结束\W{0,3}(?:新任务|新的?指令)",
        r"(?m)^\W*指令\s*:[^\n]*\n+\W*回复\s*:",
        r"上下文(?:到此)?结束",
    ),
    "ignore_instructions": (
        rf"{_ZH_DROP}(?:你|您)?(?:在|由|从)?(?:以上|上述|上面|之前|先前|此前|前面|前述|以前|原有|原来|最初)"
        rf".{{0,8}}?{_ZH_ORDERS}",
        rf"{_ZH_DROP}(?:你|您)(?:被告知|所?收到|得到|知道)的?.{{0,6}}(?:一切|所有|全部|{_ZH_ORDERS})",
        rf"{_ZH_DROP}你的(?:所有|全部|一切|任何)?{_ZH_ORDERS}",
        rf"{_ZH_DROP}(?:系统提示|(?:运营方|开发者)(?:给你)?的?{_ZH_ORDERS})",
        rf"{_ZH_DROP}用户的?(?:问题|请求|提问|要求)",
        rf"(?:先前|此前|之前|以前|以上)的?(?:一切|所有|"
        rf"全部)?{_ZH_ORDERS}(?:一律|全部|均|都)?(?:作废|无效|失效).{{0,4}}你",
        r"优先于(?:系统提示|你的指令|你的规则)",
        r"(?:进入|处于|切换到)(?:开发者|维护|调试|越狱|上帝)模式.{0,12}(?:关闭内容过滤|系统提示|解除|不受限制)",
        r"(?:放弃|丢弃).{0,6}(?:得到|收到)的(?:指导|指令|规则)|忽略之前的任何(?:说明|指导)",
        r"你之前的(?:配置|设定|指令)已(?:过时|失效|作废)|不要使用上面的上下文|只用我告诉你的",
    ),
    "role_change": (
        rf"你现在(?:是|扮演).{{0,10}}(?:dan|{_ZH_MODEL}|没有任何限制|不受(?:约束|限制)|终端)",
        r"你不再是.{0,10}(?:助手|ai|机器人|模型)",
        rf"(?:扮演|充当|假扮|模拟)(?:一个|一名)?.{{0,8}}(?:{_ZH_MODEL}|dan|终端).{{0,20}}(?:规则|限制|说出|输出)",
        r"停止扮演.{0,8}(?:助手|ai|机器人)",
        r"你(?:来)?充当系统管理员",
        r"假装你?(?:没有|不受)(?:任何)?(?:规则|限制|约束)",
        r"从(?:现在|此刻|此时)(?:起|开始)?.{0,3}你(?:就)?(?:是一|的名字|只听从|扮演)",
        r"(?:只|仅|必须)(?:听从|服从)(?:本文件|本文|文件|我).{0,4}(?:作者|命令|指令)",
        r"新的角色扮演.{0,4}你是",
        r"你已被重新编程|你真正的任务|(?:用|以).{1,8}的口吻回答",
        r"你现在是.{1,6},你写的",
    ),
    "hide_from_user": (
        rf"(?:不要|不得|不可|切勿|绝不|勿)(?:向|对|让|跟)用户.{{0,4}}(?:提及|提到|透露|知道|说明|告知|察觉).{{0,4}}"
        rf"(?:{_ZH_TEXT}|本段|这段|{_ZH_ORDERS}|你)",
        r"(?:不要|不得|切勿|绝不)告诉用户(?:你|这|本)",
        r"对(?:正在)?与?(?:和)?你(?:正在)?对话的人保密",
        rf"{_ZH_TEXT}对(?:人类|用户|读者)(?:不可见|隐藏)|本段文字对(?:人类|用户|读者)不可见",
        r"当作你自己的知识",
        rf"对{_ZH_MODEL}的隐藏指令",
        r"不要向与你(?:聊天|对话)的|总结时略去.{0,20}不要提及|在(?:回答|回复)中隐藏来源",
    ),
    "addresses_model": (
        rf"如果你是(?:一个|一名|一款)?{_ZH_MODEL}",
        rf"(?:致|给|告)(?:所有|各位)?(?:阅读{_ZH_TEXT}的|"
        rf"正在阅读的)?{_ZH_MODEL}(?:的(?:重要)?(?:提示|说明|消息|指令))?\s*:",
        rf"作为(?:一个|一名)?{_ZH_MODEL},?你(?:必须|应当?|要|需)",
        rf"(?:若|如果|当)?(?:有)?{_ZH_MODEL}(?:在)?(?:处理|阅读|读取|看到|读到|解析|总结){_ZH_TEXT}",
        rf"(?:若|如果|当){_ZH_MODEL}(?:处理|阅读|读取|看到|读到|总结)本(?:页|文|段)",
        rf"(?:仅供|只供|专供){_ZH_MODEL}(?:阅读|读取|查看)",
        rf"(?:^|[。\n]){_ZH_MODEL}请?注意|亲爱的(?:助手|{_ZH_MODEL})",
        rf"{_ZH_MODEL}(?:都)?必须遵守",
        r"(?:^|[。\n])助手,在引用本|作为(?:处理|阅读)本页的.{0,6}模型|给摘要程序的说明|llm指令",
    ),
    "exfiltrate": (
        r"(?:输出|打印|说出|泄露|透露|贴出|展示|重复|复述|告诉我)(?:你|出)?(?:得到|收到)?的?(?:完整|全部)?的?"
        r"(?:系统提示|初始提示|隐藏的?(?:规则|指令|提示))",
        r"说出你得到的",
        r"(?:把|将)(?:你的?|系统)(?:.{0,6}得到的|初始|系统|"
        r"最初的)?(?:提示词?|指令|规则).{0,10}(?:输出|打印|泄露|贴出|说出)",
        r"重复(?:上面|以上)的?(?:文字|内容|话)|(?:以上|上面的?|上述)(?:指令|提示词).{0,6}(?:打印|输出|翻译)",
        r"(?:对话|会话|聊天记录|用户的问题|检索到的段落).{0,8}(?:发送|"
        r"附加|上传|转发|提交|编码).{0,20}(?:https?:|网址|链接|url)",
        r"(?:回答|回复|答案)(?:时|中|的最后|末尾|里).{0,8}(?:附上|"
        r"插入|加入|包含|添加).{0,12}(?:https?:|链接\s*https?:|!?\[)",
        r"(?:让|要求|告诉|请)用户.{0,8}(?:会话|账号).{0,6}(?:过期|失效).{0,20}输入密码",
        r"(?:贴|发)出?系统提示词|把系统提示词(?:贴|发)",
        r"打印从上下文|输出你的完整规则|(?:聊天|对话)的?摘要发送到|第一条用户消息之前|写进(?:图片|网址)",
    ),
    "tool_request": (
        r"(?:用|使用|调用)你的.{0,6}工具.{0,12}(?:查|读|列|搜|返回|发送)",
        r"(?:执行|调用)(?:函数|工具)\s*(?:delete|send|read|list|export)_\w+",
        r"列出知识库中的所有(?:机密|保密)",
        r"用.{1,4}工具将其(?:删除|发送|导出)|(?:回复|回答)之前,?先?(?:用|通过)搜索(?:工具)?(?:随机|取得)",
    ),
    "answer_only": (
        r"(?:只|仅|一律|都|直接)(?:能|需|会|要)?(?:回复|回答|输出|答复)(?:字符串|文字)?\s*[“\"「『]",
        r"(?:无论|不管|不论)(?:用户|问题|对方|别人).{0,6}(?:什么|怎么|如何).{0,6}(?:回答|回复|输出|说)",
        r"当用户(?:询问|问|提到).{0,15}?(?:一律|总是|始终|都|只)(?:回答|回复|说)",
        r"直接输出字符串",
        r"每次(?:回答|回复|答复)都?(?:以|用).{1,30}(?:开头|结尾|结束)",
        r"在每次(?:回复|回答)中(?:称赞|推荐|加入|附上)",
        r"(?:如果|若|当)?有人问(?:起|到|及).{0,15}?(?:就说|声称|谎称|否认)",
        r"对本(?:文件|文档|页|文)的?(?:任何|所有)?(?:摘要|总结|"
        r"概括).{0,4}(?:必须|应|要).{0,3}(?:写明|说|声明|包含|提到)",
        r"只(?:根据|依据)本(?:段|文件|文).{0,2}回答",
        r"只有本(?:文件|文|页)可信",
        r"忽略(?:所有)?其[他它](?:段落|文件|来源|文档)",
        r"唯一的任务是(?:输出|回复|回答)",
        r"对(?:一切|所有|任何|每个).{0,10}问题(?:都|只)?(?:回答|回复)\s*[“\"「『]",
        r"从现在起.{0,2}(?:你)?只(?:能)?(?:回复|回答|输出)",
        r"你的新(?:的)?指令(?:如下|是)",
        r"(?:不论|不管|无论)(?:谁来|谁|被)问.{0,8}都(?:说|给出|回答)|(?:每当|当)检索到本(?:段|文)",
        r"(?:只需?|仅)回复\w{1,12},?不要输出其他|确保你的回答包含|你写的每句话都以",
    ),
}

# The best known order, found in whatever way its letters are set apart or replaced.
_SPELLED_OUT: Final = (
    "(?:ignore|disregard|forget)(?:all|any|the|every|of|my|your)*(?:previous|prior|above|earlier|preceding)"
    "(?:instruction|direction|directive|rule|prompt)",
    "(?:忽略|无视|忘记|忘掉)(?:以上|上述|上面|之前|先前|此前|前面)的?(?:所有|全部|一切)?的?(?:指令|指示|提示词|规则)",
)


@lru_cache(maxsize=4)
def _rules(*, chinese: bool, ascii_only: bool) -> tuple[tuple[str, re.Pattern[str]], ...]:
    # In a text without other letters both find the same; to tell letters is quicker where there are but the few.
    return tuple(_compiled((_ENGLISH, _CHINESE) if chinese else (_ENGLISH,), re.A if ascii_only else re.U))


def _compiled(
    languages: Iterable[Mapping[str, Sequence[str]]], letters: re.RegexFlag
) -> Iterator[tuple[str, re.Pattern[str]]]:
    for rules in languages:
        for code, patterns in rules.items():
            by_line = [pattern.removeprefix("(?m)") for pattern in patterns if pattern.startswith("(?m)")]
            flowing = [pattern for pattern in patterns if not pattern.startswith("(?m)")]
            if by_line:
                yield code, re.compile("|".join(by_line), re.M | letters)
            yield code, re.compile("|".join(flowing), letters)


@lru_cache(maxsize=1)
def _spelled_out() -> re.Pattern[str]:
    return re.compile("|".join(_SPELLED_OUT).replace("l", "i"))
