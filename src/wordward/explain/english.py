"""English words by what they are, as far as lists tell: of grammar, names, and others that rules need."""

from collections.abc import Sequence

# English words that carry grammar, in groups that stand in each other's place; a word may be in several.
GROUPS = tuple(
    frozenset(group.split())
    for group in """
    the this that each every another any some my your his her its our their;
    a the this that every another my your his her its our their;
    an the this that every another my your his her its our their;
    the these those all both some any no my your his her its our their;
    many few several some most all;
    i you we they;
    he she it;
    it this that everything nothing something anything;
    everyone nobody someone anyone everybody somebody anybody;
    me you him her it us them;
    mine yours his hers ours theirs;
    myself yourself himself herself itself ourselves themselves;
    who which that;
    how why when where;
    in into inside within;
    on onto upon;
    over above;
    under below;
    between among;
    with without;
    through across via;
    during throughout;
    around near beside behind;
    up down;
    and or but yet;
    if because since while although though unless until when as before after once;
    is was isn't wasn't;
    are were aren't weren't;
    am was;
    has had hasn't hadn't;
    have had haven't hadn't;
    does did doesn't didn't;
    do did don't didn't;
    can could may might must shall should will would can't cannot couldn't won't wouldn't shouldn't mustn't;
    not never always also still;
    always usually often sometimes never rarely;
    just only simply;
    very really quite pretty extremely so;
    more less;
    most least;
    much little;
    here there;
    now then soon again later;
    first last next;
    better worse;
    best worst;
    i'm we're you're they're;
    it's that's there's he's she's what's;
    i've we've you've they've;
    i'd we'd you'd they'd he'd she'd it'd;
    i'll we'll you'll they'll he'll she'll it'll;
    ah aw aww awww argh boo eek eww gosh grr ha hah haha hahaha hehe hey heh hmm hooray huh hurray lmao lol meh omg
    ooh ooo oops ouch phew rofl sigh ugh uh um whoa whoo woah woo woohoo wow wtf xd yay yikes yuck yum
    """.split(";")
)
# What the tokenizer `words` leaves of contractions, also French and Italian ones: neither replaced nor put in.
PIECES = frozenset(
    """
    s t d m ll ve re don didn doesn isn aren wasn weren hasn haven hadn couldn wouldn shouldn mustn needn ain won
    n't 's 'm 're 've 'd 'll
    qu jusqu lorsqu puisqu quoiqu quelqu presqu aujourd hui st dell dall nell sull coll quell
    """.split()
)
# Words of grammar that no other can replace without breaking the sentence.
ALONE = frozenset(
    """
    be been being having done doing to of by from for at about against like despite along beyond than whom whose
    toward towards such own same else ought what either neither plenty used im dont cant out off back away too even
    already rather almost hardly barely one none whether per vs versus ago maybe perhaps however instead otherwise
    whatever whoever whenever other others please yes yeah yep nope nah gonna gotta wanna oh
    """.split()
)
PAST = frozenset(
    """
    got went had died came took gave made said told thought found kept left lost sent felt paid sold bought broke saw
    knew wrote began ran fell spent built held heard met led won wore drove chose spoke stood understood became
    brought caught taught slept dealt meant grew threw flew drew
    """.split()
)
NUMBERS = frozenset("two three four five six seven eight nine ten eleven twelve twenty hundred thousand".split())
# Words that are not put into anyone's text.
CRUDE = frozenset(
    """
    fuck fucks fucked fucking fucker shit shitty bitch bitches whore whores slut bastard bastards cunt cock dick pussy
    ass asshole nigger negro faggot fag tits rape raped porn
    """.split()
)
TIMES = frozenset("second minute hour day night week weekend month year time home man woman friend part cost".split())
NOUNS = ("tion", "sion", "ment", "ness", "ity", "ance", "ence", "ship", "ism", "er", "or", "age")
ADJECTIVES = ("ful", "less", "ous", "ive", "able", "ible", "ish")
INTERJECTIONS = GROUPS[-1]
CLOSED = frozenset().union(*GROUPS, ALONE)
QUALITIES = frozenset(
    """
    good bad great nice fine awesome excellent perfect poor big small old new hot cold wrong right happy sad easy
    hard cheap slow fast free full empty real true false sure dead broken stupid dumb cool crazy amazing
    lovely friendly ugly silly early likely lonely lively deadly costly
    """.split()
)
# Names that are hardly ever other words; written in lower case, as many vocabularies have them.
NAMES = frozenset(
    """
    john james robert michael david richard thomas charles joseph daniel paul kevin brian george edward steven eric
    stephen andrew peter susan mary linda barbara elizabeth jennifer maria margaret karen nancy lisa helen sandra
    donna carol laura sarah kimberly anna emma
    america england france germany italy spain russia china japan india canada mexico brazil australia africa europe
    asia london paris berlin rome moscow tokyo chicago boston texas california florida
    american english french german british italian spanish russian chinese japanese indian
    january february april june july september october november december
    monday tuesday wednesday thursday friday saturday sunday
    """.split()
)
# Words of the groups that say as much as others do: their opposites turn a sentence round.
SAYING = INTERJECTIONS.union(
    """
    no not never always rarely often nothing everything nobody everyone without less least more most little much few
    many better worse best worst
    """.split()
)
COMMON = frozenset("the of and to for".split())
COMMONEST, MOST = 40, 3  # words that are looked at, and how many of COMMON are to be among them


def fold(word: str) -> str:
    """A word in lower case and with straight apostrophes, as the lists here write it."""
    return word.lower().replace("’", "'")


def looks_english(words: Sequence[str], counts: Sequence[float]) -> bool:
    """Whether texts are English, by how often they hold each word: most of its commonest are among the commonest."""
    order = sorted(range(len(words)), key=lambda at: -counts[at])[:COMMONEST]
    return len(COMMON & {fold(words[at]) for at in order}) >= MOST
