# ruff: noqa: E501
"""User-and-assistant chats: short messages in the first person, replies of 250 to 500 words.

The answer to a question stands in one or two sentences of a reply whose rest is advice that could belong to
any chat, so the best of its many sentences is often a lucky one.
"""

from typing import Any

# title | what the user says | sentences of the reply that are about it, parted by ~
_CHATS = """
bread | I want to bake something for my sister Ines, she is coming over on Sunday and cannot eat gluten. | For a guest without gluten I would go for a buckwheat loaf with walnuts. ~ Use 400 grams of buckwheat flour, psyllium husk and warm water, and let the dough rest overnight. ~ Bake it in a closed iron pot at 230 degrees for fifty minutes.
bike | My commute is eleven kilometres and the chain of my Koga keeps skipping in the highest gear. | A chain that skips under load in one gear is nearly always a worn cassette. ~ Measure the chain with a wear gauge; past 0.75 per cent replace both together. ~ A new chain and an eleven-speed cassette should cost you about seventy euros.
lisbon | I am planning five days in Lisbon with my father, who walks with a stick. | With a stick the hills of Alfama are hard work, so take tram 28 early in the morning. ~ Stay in Belém, which is flat, and visit the tile museum on the second day. ~ For a day trip take the train to Cascais instead of climbing around Sintra.
interview | On Thursday I have an interview at a wind power company, for the role of data engineer. | Prepare a story about a pipeline you rescued: what broke, what you did, what changed. ~ Read up on SCADA data and capacity factors, since they will expect you to know those words. ~ Ask them how the on-site teams report faults back to the data team.
garden | Our new garden is in full shade and the soil is heavy clay, what can I plant? | Under full shade on clay, hostas, ferns and lungwort will carry the bed. ~ Work in a layer of leaf mould every autumn rather than sand, which turns clay to brick. ~ A climbing hydrangea would cover the north wall in about four years.
marathon | I signed up for the Rotterdam marathon in April and my longest run so far is eighteen kilometres. | Raise the long run by two kilometres a week and drop back every fourth week. ~ Your peak should be a run of 32 kilometres three weeks before Rotterdam. ~ Practise with the gels you will use in the race, one every forty minutes.
cat | My cat Miso scratches the new sofa since we moved in October. | Cats mark new homes, so put a tall sisal post right beside the sofa, not in a corner. ~ Spray a pheromone on the armrests for a month and praise Miso at the post. ~ Trim the claws every two weeks and never punish her.
spanish | I have been learning Spanish for half a year and always mix up ser and estar. | Remember ser for what something is and estar for how it is or where it is. ~ The exception that bites everybody is an event, which takes ser: la fiesta es en mi casa. ~ Write ten sentences a day about your kitchen, that trains estar without effort.
tax | I started freelancing as an illustrator in March next to my half-time job at the library. | Put thirty per cent of each invoice into a separate account from the first day. ~ Your tablet and the share of rent for the studio can be deducted, keep every receipt. ~ As long as you stay under the small-business threshold you need not charge value added tax.
sleep | I wake up at four every night and lie awake for two hours. | Waking at four is often the body's answer to alcohol or a late heavy dinner. ~ Get out of bed after twenty minutes, read something dull under a warm lamp and go back when drowsy. ~ Keep the same rising time for three weeks, even on weekends.
wedding | I have to give a speech at my brother Anton's wedding, he is a beekeeper. | Open with the swarm that Anton caught with a bathrobe, nobody forgets such a picture. ~ Keep it to four minutes and one theme: patience. ~ Close by raising a glass of mead to the couple.
python | My script reads a CSV of twelve gigabytes with pandas and dies with a memory error. | Read it lazily with Polars and scan_csv, so that only the needed columns are loaded. ~ Cast the text columns to categories, which shrank a similar file by a factor of nine. ~ If you must stay with pandas, iterate with a chunksize of half a million rows.
chess | I keep losing with black against the London System. | Against the London play an early queen to b6, which hits the pawn on b2. ~ Strike with c5 before you develop the king's knight, so that the bishop has to decide. ~ Study three model games by Caruana with this set-up.
camera | I want to photograph the northern lights in Tromsø with my old Fuji. | Start at f/2, 1600 ISO and six seconds, and focus by hand on a bright star. ~ Two spare batteries under your jacket are worth more than a better lens. ~ Turn off long-exposure noise reduction or you will miss every second picture.
piano | My daughter Wanda, seven, refuses to practise the piano. | At seven, ten minutes twice a day beat one long session. ~ Let Wanda choose one silly piece each week and play the teacher for you. ~ A sticker for starting works better than one for finishing.
coffee | My espresso tastes sour although the beans are fresh. | Sour means under-extracted: grind finer until 36 grams run through in 28 seconds. ~ Let the machine heat for half an hour, most sour cups come from a cold group head. ~ Beans younger than six days still hold too much gas.
roof | We want solar panels but our roof faces east and west. | An east-west roof yields about fifteen per cent less but spreads it over the day. ~ Use two strings with an inverter that has two trackers. ~ A battery of seven kilowatt hours would cover your evenings.
novel | I am writing a novel about a ferryman on the Danube in 1848 and the middle drags. | Let the ferryman smuggle a letter he cannot read, then the middle has a secret. ~ Give the customs officer a reason to like him. ~ Cut the two flood chapters into one.
knee | My left knee hurts when I walk downstairs, since the hike on Corsica. | Pain going downstairs points to the tendon under the kneecap. ~ Do slow single-leg squats on a slanted board, three sets of fifteen. ~ If it swells or locks, see a doctor before you hike again.
phone | I want to give my grandmother, who is 86, her first smartphone. | Choose a phone with a real home button and put only four icons on it. ~ Set up remote help before you hand it over. ~ Let her call with photos of faces instead of names.
fish | My aquarium of sixty litres gets green water every summer. | Green water is floating algae, a small UV clarifier clears it within a week. ~ Cut the light to seven hours and keep the tank out of the sun. ~ Floating ferns take the nitrate that feeds it.
move | We move to Utrecht in June and must decide what to do with 900 books. | Keep what you would lend to a friend, that is usually a third. ~ A second-hand dealer takes whole shelves if you send photos of the spines. ~ Pack books in wine boxes so that nobody hurts their back.
"""

_FILLER = """
It helps to begin with a small step and to look after a few days whether it made a difference before you change anything else.
Many people try to do everything at once and then cannot tell which of the changes was the one that mattered in the end.
Write down what you did and when, because memory is generous and paper is not, and a short log shows patterns quickly.
If you have a friend who has done this before, ask them for an hour of their time; it often saves a whole weekend.
There is no need to buy anything expensive at first; borrow what you can and decide later what you really want to own.
Plan a little slack, since things take longer than expected, and you will enjoy it more when nothing has to be rushed.
Do not be discouraged by a bad day, progress is rarely a straight line and a pause can be part of a good plan.
Check the weather, the opening hours and the usual small print, as those tend to spoil the best of intentions.
I would set a clear limit on money and time beforehand, so that the decision is easy when you come close to it.
Take a photo at the start and one at the end, you will be surprised how much has changed without your noticing.
When you are unsure between two options, pick the one that is easier to undo, and keep the other one in mind.
Safety comes first of course: read the manual, wear what you need to wear and ask a professional when in doubt.
A good rule is to spend most of the effort on the part that you do every day and little on the part you do once.
Try to explain your plan to someone in two sentences; where you stumble, there is something that needs more thought.
Quality matters more than quantity here, and a simple thing done well will please everybody involved.
You can always come back to me with what you found out and we can adjust the plan together step by step.
Some people like lists, others like pictures; use whatever keeps you going, the form is less important than the habit.
Look for local groups as well, they know the conditions where you live far better than any general advice.
Keep the receipts and the packaging for a while in case something does not fit or does not work as promised.
Start with the weakest spot, because improving it gives the greatest return and makes everything else easier.
It may be worth reading one good book about it rather than thirty short articles that all say the same.
Reward yourself after each milestone, with a walk, a good meal or an evening off, so that the effort stays pleasant.
Be careful with advice from forums, it is often well meant but written for a situation that differs from yours.
Finally, remember why you wanted this in the first place; that is the best guide when the details become confusing.
"""

_ASKED = """
Who can I not serve gluten to? => bread/user
Which loaf did you suggest for my sister? => bread/assistant
How hot should the oven be for the loaf? => bread/assistant
How far do I cycle to work? => bike/user
What was probably wrong with my bicycle? => bike/assistant
Who comes along on my trip to Portugal? => lisbon/user
Which district did you recommend because it is flat? => lisbon/assistant
Which job did I apply for? => interview/user
Which terms from the energy business should I read up on? => interview/assistant
What kind of ground do we have in the garden? => garden/user
What could I grow up the north wall? => garden/assistant
Which race did I enter? => marathon/user
How long should my longest training run be? => marathon/assistant
What is my pet called? => cat/user
Where should I put the scratching post? => cat/assistant
Which verbs do I confuse? => spanish/user
What did you say about where a party takes place in Spanish? => spanish/assistant
Where do I work half-time? => tax/user
How much of each invoice should I set aside? => tax/assistant
At what time do I wake up at night? => sleep/user
What should I do when I cannot fall asleep again? => sleep/assistant
What is my brother's profession? => wedding/user
Which funny story should open my speech? => wedding/assistant
How large was the file my script choked on? => python/user
Which library did you suggest instead of pandas? => python/assistant
Which opening gives me trouble? => chess/user
Whose games should I study? => chess/assistant
Which exposure settings did you give me for the aurora? => camera/assistant
How old is my daughter? => piano/user
How long should she practise at a time? => piano/assistant
Why is my espresso sour, and how long should the shot take? => coffee/assistant coffee/user
Which way does my roof face? => roof/user
How large a battery did you propose? => roof/assistant
What is my book about? => novel/user
What could the ferryman carry in secret? => novel/assistant
Where did I hurt my knee? => knee/user
Which exercise is good against the pain when going downstairs? => knee/assistant
How should the contacts look on grandma's phone? => phone/assistant
What clears the water in my fish tank? => fish/assistant
In what should I pack the books? => move/assistant
Which exercise book verbs take ser although they are about a place? => spanish/assistant
Where is my new sofa being damaged, and by whom? => cat/user
Which flour goes into the buckwheat loaf? => bread/assistant
When do I have the talk with the wind power firm? => interview/user
How long does my father walk with a stick in Portugal? => lisbon/user
Which day trip did you advise instead of Sintra? => lisbon/assistant
Which tool measures the wear of the chain? => bike/assistant
Which drink should I raise at my brother's wedding? => wedding/assistant
What should the ferryman's chapters about the flood become? => novel/assistant
How long may the light of the aquarium stay on? => fish/assistant
How big is my fish tank? => fish/user
How many books do we own? => move/user
Which city do we move to, and when? => move/user
What old camera do I own? => camera/user
How many spare batteries do I need in Tromsø? => camera/assistant
How many icons should the smartphone of my grandmother show? => phone/assistant
How old is my grandmother? => phone/user
What does the east-west roof yield compared with a south roof? => roof/assistant
Which black set-up can answer the London System? => chess/assistant
What happens with value added tax for my illustrations? => tax/assistant
"""


def load() -> tuple[list[dict[str, Any]], list[tuple[str, list[str]]]]:
    from evals.sets_recall import lines

    filler = _FILLER.strip().splitlines()
    told: list[dict[str, Any]] = []
    for number, chat in enumerate(_CHATS.strip().splitlines()):
        title, user, reply = (cell.strip() for cell in chat.split("|"))
        sentences: list[str] = []
        for place, own in enumerate(s.strip() for s in reply.split("~")):
            sentences.append(own)
            steps = range(4 + (number + place) % 3)
            sentences.extend(filler[(number * 7 + place * 5 + step * 11) % len(filler)] for step in steps)
        at = 1_750_000_000_000_000 + number * 86_400_000_000
        for order, (speaker, text) in enumerate((("user", user), ("assistant", " ".join(sentences)))):
            told.append(
                {
                    "id": f"{title}/{speaker}",
                    "text": text,
                    "speaker": speaker,
                    "session": title,
                    "created_at": at + order * 60_000_000,
                }
            )
    return told, lines("", _ASKED)[1]
