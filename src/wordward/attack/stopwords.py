"""English words that carry grammar rather than content."""

STOP_WORDS = frozenset(
    """
    a an the this that these those such each every either both all any some another other
    i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
    we us our ours ourselves they them their theirs themselves one who whom whose which what
    am is are was were be been being do does did doing done have has had having
    can could may might must shall should will would ought
    and or but nor so yet if then else than as because since while although though unless until whether
    of in on at by for with from to into onto upon over under above below up down out off about against between
    among through during before after without within toward towards across along around behind beside beyond near
    no not never none nothing nobody neither nowhere cannot
    again further once here there when where why how more most less least few many much several own same too very
    just only also even still already ever rather quite almost now soon
    s t d m ll ve re don didn doesn isn aren wasn weren hasn haven hadn couldn wouldn shouldn mustn needn ain
    i'm i've i'd i'll you're you've you'd you'll he's he'd he'll she's she'd she'll it's it'll we're we've we'd we'll
    they're they've they'd they'll that's there's here's what's who's let's
    don't didn't doesn't isn't aren't wasn't weren't hasn't haven't hadn't can't couldn't won't wouldn't shouldn't
    mustn't needn't ain't n't 's 'm 're 've 'd 'll
    """.split()
)
