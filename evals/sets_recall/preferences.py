"""Preferences never named in the request: the answer shares few words, or none, with the question."""

from evals.sets_recall import lines

TOLD = """
p1 | I stopped eating meat four years ago and I don't miss it.
p2 | Loud places give me a headache within half an hour.
p3 | I always read on an e-ink device, never on paper.
p4 | My knees are bad, so anything with many stairs is out.
p5 | I can't stand the taste of coriander.
p6 | I only work in Rust and Python; please no Java.
p7 | I go to bed at nine and get up at five.
p8 | I am afraid of flying.
p9 | We have a toddler who naps from one to three.
p10 | I prefer short answers with a list of steps.
p11 | I run half marathons and train four times a week.
p12 | I am colour-blind, red and green look the same to me.
p13 | I don't drink alcohol.
p14 | I collect old maps, mostly of the Baltic coast.
p15 | Money is tight until the summer, I try to spend under twenty euros on anything.
p16 | I learned the cello as a child and still play on Sundays.
p17 | My partner is lactose intolerant.
p18 | I like my rooms cool, eighteen degrees at most.
p19 | I watch films with the original sound and subtitles.
p20 | Our flat has no balcony and faces north.
p21 | I get seasick on small boats.
p22 | I would rather write an e-mail than make a phone call.
p23 | I am left-handed.
p24 | I have two huskies that need to run every day.
p25 | Horror gives me nightmares, I stay with comedies.
q1 | The meeting with the tax adviser went well.
q2 | I sent the parcel to my aunt on Monday.
q3 | The printer at work is broken again.
q4 | My sister got a new job at a museum.
q5 | It rained the whole weekend.
q6 | I renewed my passport last week.
q7 | The neighbours are building a shed.
q8 | The train was forty minutes late this morning.
q9 | I finished the slides for the board.
q10 | My old laptop finally died.
q11 | The library has new opening hours.
q12 | I found my grandfather's watch in a drawer.
q13 | We painted the hallway white.
q14 | The bus stop was moved to the other side of the street.
q15 | My colleague went on parental leave.
q16 | I paid the electricity bill.
q17 | The school sent a letter about the summer holidays.
q18 | My bike was stolen in front of the station.
q19 | There was a power cut on our street.
q20 | I signed up for a first-aid course.
"""

ASKED = """
Which dish should I cook for myself tonight? => p1 p5
Can you suggest a bar for Friday evening? => p2 p13
What should I buy so I can read the new novel on holiday? => p3
Is that rooftop restaurant without a lift a good idea for me? => p4
Recommend a Thai or Mexican recipe for me. => p5 p1
Which language should the example code be in? => p6
Shall we have the call at ten in the evening? => p7
What is the best way for me to get to Madrid? => p8
When is a good time for visitors to come in the afternoon? => p9
How should you explain the set-up of my router? => p10
What present would make me happy for my training? => p11
Which colours should the chart have so that I can read it? => p12
What should I order to drink at the wedding? => p13
What could somebody give me as a birthday present for my wall? => p14
Find me a pair of headphones. => p15
What kind of concert would I enjoy? => p16
Which dessert can I make for the two of us? => p17
How warm should the hotel room be? => p18
Which version of the foreign film should we pick at the cinema? => p19
Which plants would do well in our home? => p20
Would a day of sailing be fun for me? => p21
How should I contact the landlord? => p22
Which scissors should I get? => p23
Which kind of holiday home suits us and our animals? => p24
What should we watch tonight? => p25 p19
"""


def load():
    return lines(TOLD, ASKED)
