"""Question and function words, dropped from queries and from nothing else. All folded (lower case, simplified)."""

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENGLISH: Final = _words(
    """
    a an the this that these those there here i me my mine myself we us our ours you your yours he him his she
    her hers it its they them their theirs someone anyone everyone somebody anybody everybody something
    anything am is are was were be been being do does did doing done have has had having can could may might
    must shall should will would cannot don doesn didn isn aren wasn weren won wouldn couldn shouldn haven hasn
    hadn ain s t re ve ll d m who whom whose what which when where why how whether if and or but nor so than
    then as because while though although unless until of in on at by for with from to into onto about against
    between during before after above below under over through out off up down per via within without not no any
    some all both each every either neither much many more most few less least such other another same own
    please tell show give explain describe find know want need like let get got go make happen happens just only
    also too very really still yet again ever even long often far come mean means say says
    """
)

CHINESE: Final = _words(
    """
    请问 请 麻烦 告诉我 告诉 帮我 我想知道 想知道 想问 问一下 一下 说说 介绍 解释 什么时候 什么样 什么 怎么样
    怎么办 怎么 怎样 如何 为什么 为何 哪些 哪个 哪里 哪儿 哪位 哪种 哪一 哪 谁 几个 几 多少 多久 多长 多大 多高
    是否 是不是 能不能 可不可以 可以 能否 可否 有没有 会不会 要不要 需不需要 应该 应当 需要 能够 必须 有哪些
    有什么 是什么 是多少 的话 情况下 时候 关于 对于 根据 按照 以及 并且 或者 还是 如果 那么 那 这个 那个 这些
    那些 这 吗 呢 吧 啊 呀 嘛 么 的 了 着 地 得 是 在 和 与 或 及 而 但 也 都 就 还 又 被 把 让 给 对 从 到 由
    于 以 之 其 所 我们 你们 他们 她们 我 你 您 他 她 它 们 能 会 要 有 最 很 该
    """
)

# Words that hold one of the above and mean something of their own: looked at first, and left whole.
CHINESE_KEPT: Final = _words(
    """
    目的 在职 在家 在线 在岗 在途 在校 现在 所在 存在 和解 和谐 共和 总和 饱和 与会 参与 地点 地址 地区 地方
    地图 场地 外地 当地 本地 工地 基地 土地 得到 获得 所得 心得 取得 是非 了解 着装 着火 从事 从业 到期 到账
    到达 到岗 到场 报到 迟到 自由 理由 事由 给付 给予 对象 对外 对账 对方 核对 以上 以下 以内 以外 以前 以后
    之前 之后 之间 其他 其它 所有 所属 住所 场所 厕所 会议 会计 会员 社会 工会 开会 机会 培训会 要求 要点 重要
    主要 摘要 纪要 有效 有限 有薪 带薪 所有人 有害 拥有 没有 持有 最低 最高 最长 最短 最多 最少 最大 最小 最后
    最新 最终 最近 应该 都市 还原 归还 就业 就职 就餐 就医 成就 让利 转让 把关 能力 能源 功能 性能 智能 技能
    职能 节能 被子 其中 而且 但是 及时 普及 涉及 与否 给薪 发给 自己 其实 还款
    """
)
