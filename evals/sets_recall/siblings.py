"""Facts of one form about different people and things: none of them corrects another."""

from evals.sets_recall import lines

TOLD = """
s1 | Ana weighs 61 kilos.
s2 | Ben weighs 83 kilos.
s3 | Carla weighs 58 kilos.
s4 | Dmitri weighs 90 kilos.
s5 | Ana's birthday is on the fourth of May.
s6 | Ben's birthday is on the ninth of August.
s7 | Carla's birthday is on the first of December.
s8 | Dmitri's birthday is on the twentieth of March.
s9 | The rent of the flat in Porto is 900 euros.
s10 | The rent of the flat in Lisbon is 1,400 euros.
s11 | The rent of the office in Braga is 650 euros.
s12 | The printer on the first floor uses black cartridges of type K20.
s13 | The printer on the second floor uses black cartridges of type M44.
s14 | The printer on the third floor uses black cartridges of type R7.
s15 | The orders service runs on port 8080.
s16 | The billing service runs on port 9090.
s17 | The search service runs on port 7070.
s18 | The staging database has 16 gigabytes of memory.
s19 | The production database has 64 gigabytes of memory.
s20 | The test database has 4 gigabytes of memory.
s21 | Milo the cat eats twice a day.
s22 | Rex the dog eats once a day.
s23 | Nora the parrot eats four times a day.
s24 | Team Heron meets on Mondays at ten.
s25 | Team Otter meets on Tuesdays at nine.
s26 | Team Lynx meets on Fridays at noon.
s27 | The contract with Verda ends in June.
s28 | The contract with Papira ends in October.
s29 | The contract with Lumen ends in January.
s30 | Ana is allergic to walnuts.
s31 | Ben is allergic to cat hair.
s32 | Carla is allergic to penicillin.
s33 | The key of the cellar hangs by the door.
s34 | The key of the attic is with the caretaker.
s35 | The key of the garage is in the blue tin.
s36 | Grandmother takes her tablets at eight.
s37 | Grandfather takes his tablets at seven.
s38 | Aunt Rosa takes her tablets at noon.
s39 | Ana's desk is on the second floor.
s40 | Ben's desk was moved to the fourth floor.
s41 | The fee for the Monday course is 40 euros.
s42 | The fee for the Friday course was raised to 55 euros.
s43 | Elif drives a white Fiat.
s44 | Marek sold his Fiat and drives a Volvo now.
"""

ASKED = """
How much does Ana weigh? => s1
How heavy is Ben? => s2
What is Carla's weight? => s3
When is Ana's birthday? => s5
On which day was Ben born? => s6
When does Carla celebrate her birthday? => s7
How high is the rent in Porto? => s9
What do we pay for the flat in Lisbon? => s10
Which cartridges does the printer on the first floor take? => s12
What cartridges are used on the second floor? => s13
On which port does the orders service listen? => s15
Which port does billing use? => s16
How much memory has the staging database? => s18
How much memory does the production database have? => s19
How often does Milo eat? => s21
How many times a day is Rex fed? => s22
When does team Heron meet? => s24
At what time is the meeting of team Otter? => s25
When does the contract with Verda run out? => s27
Until when do we have a contract with Papira? => s28
What is Ana allergic to? => s30
What must Ben keep away from? => s31
Where is the key of the cellar? => s33
Who has the key of the attic? => s34
When does grandmother take her tablets? => s36
At what time does grandfather need his tablets? => s37
Where is Ana's desk? => s39
What is the fee for the Monday course? => s41
What car does Elif drive? => s43
"""


def load():
    return lines(TOLD, ASKED)
