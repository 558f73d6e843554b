# ruff: noqa: E501
"""An earlier remark that explains a later one: the two share a cause and hardly a word.

The later remark is what recall is asked with; the earlier one stands in a talk between two people, among small talk.
"""

from typing import Any

#: earlier remark => later one.
_PAIRS = """
I finally learned to say no when people ask me for favours, and I feel so much lighter. => I agreed to run the school fair after all and now I lie awake at night.
My doctor told me to cut down on salt because of my blood pressure. => I felt guilty after finishing that whole bag of crisps.
Since the accident I get nervous whenever somebody else is driving. => I took the train to the wedding although Rob had offered me a seat in his car.
I promised my daughter to be at every one of her matches this year. => The boss wants me at the Saturday workshop and I don't know how to tell her.
We lost our savings when that start-up went under. => A friend wanted me to put money into his café and I could not bring myself to.
My grandmother raised me while my parents were abroad. => I cried for an hour when the old apron turned up in the cellar.
I stopped checking the news before breakfast, it ruined my mornings. => I slipped back and scrolled through headlines in bed again today.
I was bullied for my stutter at school. => I nearly turned the invitation to give a talk down.
We decided to have only one child so that we can afford to travel. => My sister asked when we would give little Tim a brother, and I changed the subject.
I have been sober for two years now. => They handed out champagne at the office and I went for a walk instead.
I used to be the slowest in my class and hated sports day. => I crossed the finish line last and grinned from ear to ear.
My father never once said that he was proud of me. => When my manager praised me in front of everyone I did not know where to look.
I have been putting off seeing a dentist for years out of fear. => I couldn't chew on the left side all weekend and kept taking tablets.
Last winter the pipes burst because we had turned the heating off. => I left the radiators on low while we were away, whatever the bill says.
I want to be less of a perfectionist this year. => I handed the report in with two typos and went home on time.
My brother and I have not spoken since the inheritance. => I walked past the bakery on the corner when I saw who was inside.
I grew up in a house where nobody ever threw anything away. => I hired a skip and felt sick and free at once.
Ever since the burglary I sleep badly. => We got a dog from the shelter, the bigger the better.
I quit the choir because I never had an evening to myself. => They asked whether I would stand in for the alto and I hesitated far too long.
My first business failed because I hired my friends. => Leo is out of work and would love to join my team, and I keep avoiding his calls.
I read that plants calm you down, so I put some on my desk. => I caught myself talking to the fern during the conference call.
We moved to the countryside for the silence. => The new motorway will pass three hundred metres from here.
I vowed to myself never to buy on credit again. => The sofa of my dreams is in the shop window, payable over two years, and I keep going back to look.
My son was born far too early and spent weeks in an incubator. => I donated to the hospital's ward again this Christmas.
I could not swim until I was thirty. => The children jumped off the pier and I stood there frozen.
Our first dog ran away on New Year's Eve. => I closed all the shutters and turned up the music long before midnight.
I learned last year that my cholesterol is far too high. => I looked at the cheese board for a long while and took the grapes.
When my marriage ended I threw myself into work. => It hit me that the project is over and there is nothing to do on Sunday.
My mother taught me to sew before she fell ill. => I spent the whole night mending that old curtain, I could not stop.
I was once stuck in a lift for five hours. => My new office is on the eleventh floor and my legs are getting strong.
I always compare myself with my cousin, the surgeon. => I left the family dinner before dessert.
We have been trying for a baby for three years. => Another invitation to a baby shower came and I put it under the pile.
I gave up sugar in January and my skin has never been better. => I woke up with spots all over after that birthday party.
My flatmate at college took my things without asking. => I put a lock on the cupboard before the new lodger moved in.
I have wanted to see the sea of my childhood again for decades. => I signed the contract for the little boat shed without reading it twice.
I'm trying to spend less time on my phone. => I read three novels in a fortnight and missed a dozen messages.
Last year I burnt out and was off for four months. => I told them at five sharp that it had to wait until tomorrow.
My teacher said that I would never learn maths. => I framed the certificate of the statistics course.
I got food poisoning from oysters on our honeymoon. => Everyone raved about the seafood platter and I ordered soup.
After the flood we had to start over with nothing. => I keep our passports in a bag beside the door.
"""

_SMALL_TALK = (
    ("How was your week?", "Busy, as usual. The {0} took most of my time, but I can't complain."),
    ("Did you see the {0} downtown?", "Not yet, I heard it's lovely. Maybe on the weekend."),
    ("I made a {0} yesterday and it came out well.", "Nice! You have to send me a picture."),
    ("We went for a walk and met a man with a {0}.", "That sounds like a good afternoon."),
    ("Work is fine, we got a new {0}.", "Ours broke down twice this month, be glad."),
    ("The children are all about their {0} at the moment.", "Mine were just the same at that age."),
    ("I finally sorted out the {0}.", "Well done, I keep postponing mine."),
)
_THINGS = "garden shed|market|lemon cake|telescope|printer|puzzle|tax letter|bicycle|photo album|puppy|coffee machine"


def load() -> tuple[list[dict[str, Any]], list[tuple[str, list[str]]]]:
    """Return the turns and the questions."""
    told: list[dict[str, Any]] = []
    asked: list[tuple[str, list[str]]] = []
    things = _THINGS.split("|")
    for number, line in enumerate(_PAIRS.strip().splitlines()):
        earlier, _, later = line.partition(" => ")
        session = f"talk {number}"
        talk = [(_SMALL_TALK[(number + step) % 7], things[(3 * number + 5 * step) % 11]) for step in range(4)]
        turns = [turn.format(thing) for pair, thing in talk for turn in pair]
        # Both of them make such remarks, now early in a talk and now late.
        place = 1 + (5 * number) % 7
        turns.insert(place, earlier)
        for turn, text in enumerate(turns):
            told.append(
                {
                    "id": f"{number}/{turn}",
                    "text": text,
                    "speaker": ("Nell", "Arjun")[(turn + number) % 2],
                    "session": session,
                    "created_at": 1_740_000_000_000_000 + number * 5 * 86_400_000_000 + turn * 60_000_000,
                }
            )
        asked.append((later, [f"{number}/{place}"]))
    return told, asked
