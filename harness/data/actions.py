"""Annotated words as the ontology's verbs: which words are no operation, which mean one of the suggested verbs.

The ontology suggests 18 verbs and allows others. A word of `_VERBS` becomes its verb; a word of `NOT_OPERATIONS`, or
one that names a method ("solid-state reaction method"), is no step; any other word stays as it is written, in lower
case. `GENERIC` holds the words that point at a material named elsewhere.
"""

from __future__ import annotations

import re
from types import MappingProxyType


def _words(text: str) -> list[str]:
    """The words of a table, `_` for a space within one; a comment runs to the end of its line."""
    return [word.replace("_", " ") for word in re.sub(r"#.*", "", text).split()]


_FORMS = """
    # the verbs the ontology suggests
    add: add adds added adding addition dropped dropping dripped dropwise_adding poured pour introduced introduction
    mix: mix mixed mixing mixings premixed well-mixed continuously_mixed stir stirred stirring continuous_stirring
        blended blending combined combining homogenized homogenised homogenize shaken shaking agitated
        dispersed dispersing dispersion redispersed suspended
    heat: heat heated heating heated_up preheated pre-heated preheating reheated heat-treated heat_treated
        heat_treatment heat_treatments heat_treating thermal_treatment thermal_treatments thermally_treated
        hydrothermal_treatment hydrothermally_treated autoclaved fired firing fire baked boiled warm warmed ramped
    cool: cool cooled cooling cool_down cooled_down cooling_down furnace_cooling furnace_cooled furnace-cooled
        quench quenched quenching quench-cooled
    reflux: reflux refluxed refluxing
    age: age aged aging ageing
    filter: filter filtered filtering filtration filtrated suction_filtration vacuum_filtration vacuum_filtrated
    wash: wash washed washing rinse rinsed rinsing
    dry: dry dried drying vacuum-dried vacuum_dried freeze-dried freeze_drying oven_dried oven-dried
    reduce: reduce reduced reducing reduction
    calcine: calcine calcined calcining calcination calcinations calcinated
    dissolve: dissolve dissolved dissolving dissolution solubilized
    precipitate: precipitate precipitated precipitation co-precipitation coprecipitated coprecipitation
    centrifuge: centrifuge centrifuged centrifuging centrifugation centrifugated
    sonicate: sonicate sonicated sonicating sonication ultrasonicated ultrasonication ultrasonic_treatment
        ultrasonic_vibration ultrasonically_dispersed ultrasonically_treated
    anneal: anneal annealed annealing
    ion_exchange: ion_exchange ion_exchanges ion-exchange ion_exchanged ion-exchanged
    impregnate: impregnate impregnated impregnating impregnation
    # others that the two corpora write in several forms
    grind: grind ground grinding grindings grinded grounded reground re-ground regrinding re-grinding re-grindings
        ground_together hand_grinding intermediate_grinding well-ground pulverized crushed crushing
    mill: mill milled milling ball-milled ball_milled ball_milling ball-milling re-milled pre-milled
    press: press pressed pressing compressed compacted compact cold-pressed cold_pressed hot-pressed hot_pressed
        hot_pressing pelletized pelletised pelletizing pelletization palletized pelleted re-pelleted repelletized
    sinter: sinter sintered sintering re-sintered
    melt: melt melted melting melts remelted re-melted re-melting arc-melting arc_melting arc_melted arc-melted
        induction_melting
    seal: seal sealed sealing vacuum-sealed encapsulated enclosed
    transfer: transfer transferred
    place: place placed placing put loaded inserted packed filled charged
    hold: hold held holding keep kept keeping maintain maintained maintaining dwell
    evaporate: evaporate evaporated evaporation solvent_evaporation
    remove: remove removed removing removal
    collect: collect collected collecting recovered separated separation
    weigh: weigh weighed weighing weighted
    dilute: dilute diluted diluting
    immerse: immerse immersed immersing dipped dipping soaked soaking submerging
    react: react reacted reacting re-reacted
    adjust: adjust adjusted adjusting adjustment
    purify: purify purified purification
    extract: extract extracted extracting extraction
    clean: clean cleaned cleaning
    wrap: wrap wrapped wrapped_around
    evacuate: evacuate evacuated evacuation vacuumed
    deposit: deposit deposited depositing deposition
    grow: grow grown growth crystal_growth
    polish: polish polished polishing
    sieve: sieve sieved sieving sifted
    decompose: decompose decomposed decomposition thermal_decomposition
"""


def _verbs() -> dict[str, str]:
    verbs: dict[str, str] = {}
    name = ""
    for word in _words(_FORMS):
        if word.endswith(":"):
            name = word[:-1]
        else:
            verbs[word] = name
    return verbs


_VERBS = MappingProxyType(_verbs())

STIRRED = frozenset(_words("stir stirred stirring continuous_stirring"))
"""Words that say the mixture was stirred, which `mix` alone does not."""

NOT_OPERATIONS = frozenset(
    _words("""
    obtain obtained get got give yield afford form formed forming formation  # results, and names for them
    produce produced produces production resulting resulted made make generate generated created derived
    achieve achieved became become appeared occurred show shown denoted labeled labelled marked named designated
    signed found revealed known identified exist served remained
    prepare prepared preparing preparation preparations preparation_steps sample_preparation  # the synthesis as a whole
    synthesize synthesized synthesised synthesis syntheses fabricate fabricated fabricating fabrication
    performed conducted carried carried_out done took_place designed developed implemented
    purchased bought procured provided supplied employed utilized use used using chosen  # where things come from
    measured detected determined observed monitored confirmed estimated characterized calibrated  # measurements
    recorded checked examined investigate investigation studying noticed scanned anal._calcd. rietveld_refinements
    followed following subjected subject allowed based contained containing comprising  # links between other words
    controlled controlling control prevent ensure avoid_contact completion complete completing repeated needed inside
    process processes procedure procedures method reaction possible_reaction step steps handling handled all_handling
    manipulations condition conditions →
    """)
)

_METHOD = re.compile(r"(method|technique|route|procedure|process|approach|technolog(y|ie))s?$|solid[- ]?state")
"""The name of a way to make things, not a thing done."""
_ADVERB = re.compile(r"^(?:(?:\w+ly|well|double|water|slow) )+")
_PREPOSITION = re.compile(r" (?:into|in|out|down|up|over|together|completely)$")
_BROKEN = re.compile(r"(\w)- (\w)")

GENERIC = frozenset(
    _words("""
    mixture mixtures solution solutions product products sample samples suspension suspensions powder powders
    precipitate precipitates precursor precursors pellet pellets solid solids particles gel sol material materials
    chemicals chemical reagents reagent slurry solvent solvents residue filtrate supernatant compound compounds
    system crystals crystal composition compositions specimen specimens ingredients substance elements dispersion
    phase polycrystals ingot ingots mass batch raw constituents them they it these those all both
    """)
)
"""Words for a material that say nothing of what it is."""
_ADJECTIVES = frozenset(
    _words("""
    resultant resulting obtained title final starting raw mixed initial desired target the a an respective constituent
    pure
    """)
)

UNSPECIFIC = frozenset(
    _words("rate rates temperature temperatures time times pressure pressures period conditions power ramp")
)
"""Annotated conditions that name a kind and no value."""


def verb(word: str) -> str | None:
    """The ontology's verb for an annotated word, the word itself where there is none, None for what is no operation.

    >>> [verb(word) for word in ("Calcined", "re-ground", "spin-coated", "purchased", "solid-state reaction method")]
    ['calcine', 'grind', 'spin-coated', None, None]
    """
    text = normal(word)
    if _METHOD.search(text):
        return None
    # "slowly cooled down" means what "cooled" does, but only where the rest is a word known here: "hydrothermally
    # treated" is more than "treated".
    for form in (text, _PREPOSITION.sub("", text), _PREPOSITION.sub("", _ADVERB.sub("", text))):
        if form in NOT_OPERATIONS:
            return None
        if form in _VERBS:
            return _VERBS[form]
    return text


def normal(word: str) -> str:
    """The word in lower case with single spaces and without the hyphen of a line break.

    >>> normal("Pel- leted")
    'pelleted'
    """
    return _BROKEN.sub(r"\1\2", tidy(word).casefold())


def tidy(text: str) -> str:
    """The text with single spaces; PcMSP keeps line ends of the original as a backslash and an r."""
    return " ".join(text.replace("\\r", " ").split())


def is_generic(name: str) -> bool:
    """Whether a material's name points at something named elsewhere: "the resultant sample".

    >>> is_generic("resultant sample"), is_generic("MgB2")
    (True, False)
    """
    words = [word for word in normal(name).split() if word not in _ADJECTIVES]
    return all(word in GENERIC for word in words)
