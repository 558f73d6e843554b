"""Notes that answer together: the second shares a name with the first and hardly a word with the question."""

from evals.sets_recall import lines

TOLD = """
p1 | Maria's manager is Tomasz Wilk.
p2 | Tomasz Wilk has moved to Gdansk with his family.
p3 | Ahmed reports to Ingrid Solheim since the spring.
p4 | Ingrid Solheim cannot eat gluten.
p5 | The kitchen was designed by Studio Falkenrath.
p6 | Falkenrath's office is on the second floor of the old mill.
p7 | Our heating is looked after by a man called Dorrigan.
p8 | Dorrigan can be reached at extension 4471.
p9 | Lucia is engaged to Bram.
p10 | Bram plays the cello in a quartet.
p11 | The checkout page is built on Petrel.
p12 | Petrel needs Node 20 or newer.
p13 | Invoices are made by the service Quillon.
p14 | Quillon is written in Kotlin.
p15 | The nightly export ends up in the bucket osprey-lake.
p16 | Objects in osprey-lake are deleted after ninety days.
p17 | Project Saltmarsh is led by Noor.
p18 | Noor is on leave until the ninth of September.
p19 | The summer party takes place at Villa Amaranth.
p20 | Amaranth has no parking; take tram 11.
p21 | Yusuf went to school with Petra Lindqvist.
p22 | Lindqvist won the regional chess title twice.
p23 | The incident in May was caused by ticket KW-2207.
p24 | KW-2207 raised the connection limit without a test.
p25 | My sister's landlord is Mr Abernathy.
p26 | Abernathy collects vintage typewriters.
p27 | The staging cluster is named Wolverine.
p28 | Wolverine runs in the data centre in Frankfurt.
p29 | For the wedding we booked the band Copper Finches.
p30 | The Copper Finches ask for 1,800 euros an evening.
p31 | Dana's favourite novel is The Glass Orchard.
p32 | The Glass Orchard was written by Irena Vale.
p33 | The alarm of the pump goes to the Hesper team.
p34 | Hesper is on call from Monday to Thursday.
p35 | Grandfather was born in Ostrowek.
p36 | Ostrowek lies by a lake with three islands.
p37 | Leo's cat was treated by Dr Wanjiru.
p38 | Wanjiru's practice is closed on Wednesdays.
p39 | Customer Brightwater signed the larger plan.
p40 | Brightwater is looked after by Sanne from sales.
d1 | Maria likes to work from the library on Fridays.
d2 | Ahmed's desk faces the courtyard.
d3 | A manager signs travel requests above 500 euros.
d4 | The city archive opens at ten.
d5 | The living room was painted by a friend.
d6 | The heating is switched off from May to September.
d7 | Lucia works as a bookbinder.
d8 | The login page has a dark theme.
d9 | Reports are written in German or English.
d10 | The weekly export holds only open orders.
d11 | Project Highmoor was cancelled.
d12 | The winter party was held in the canteen.
d13 | Yusuf teaches physics.
d14 | The incident in June was a power cut.
d15 | My sister rents two rooms near the canal.
d16 | The production cluster has twelve machines.
d17 | For the wedding we need sixty chairs.
d18 | Dana reads on the train.
d19 | The pump was replaced two years ago.
d20 | Grandfather liked to talk about the harvest.
d21 | Leo's cat sleeps on the printer.
d22 | Customers on the small plan get answers by mail.
d23 | Marek has moved to Rotterdam.
d24 | Olga cannot eat nuts.
d25 | The piano teacher lives above the bakery.
d26 | Extension 4400 is the front desk.
d27 | Python 3.11 or newer is needed for the reports.
d28 | Log files are deleted after thirty days.
d29 | Samira is on leave from the first of October.
d30 | The data centre in Dublin was given up.
"""

ASKED = """
In which city does Maria's manager live? => p1 p2
What must we not serve to the person Ahmed reports to? => p3 p4
Where is the office of whoever designed the kitchen? => p5 p6
Which extension do I call about the heating? => p7 p8
Which instrument does Lucia's fiancé play? => p9 p10
What version of Node does the checkout page need? => p11 p12
Which language is the invoice service written in? => p13 p14
After how long are the files of the nightly export deleted? => p15 p16
When is the head of Saltmarsh back? => p17 p18
How do I get to the place of the summer party? => p19 p20
Did Yusuf's schoolmate ever win anything? => p21 p22
What change was behind the incident in May? => p23 p24
What does the landlord of my sister collect? => p25 p26
Where does the staging cluster run? => p27 p28
How much does the wedding band cost? => p29 p30
Who is the author of Dana's favourite novel? => p31 p32
On which days is somebody on call for the pump alarm? => p33 p34
What is there to see near grandfather's birthplace? => p35 p36
On which day can I not take Leo's cat to its vet? => p37 p38
Who in sales takes care of the customer that took the larger plan? => p39 p40
"""


def load():
    """Return the memories and the questions."""
    return lines(TOLD, ASKED)
