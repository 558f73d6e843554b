"""Facts that are corrected later: the newest statement answers, the older ones distract."""

from evals.sets_recall import lines

TOLD = """
a1 | Priya's desk is on the third floor, next to the printer room.
a2 | The staging database runs PostgreSQL 14.
a3 | Our dentist is Dr. Halloran on Mill Street.
a4 | The team stand-up is at 9:30 every weekday.
a5 | The cat is called Biscuit and she is two years old.
a6 | The launch of the mobile app is planned for the tenth of March.
a7 | Tomas drives a red Skoda.
a8 | The wifi password of the cabin is written on the fridge.
a9 | The annual budget for training is 4,000 euros a person.
a10 | Grandma lives in Lisbon with her sister.
a11 | Invoices are sent to accounts@northwind.example.
a12 | The bakery closes at six.
a13 | Lena studies marine biology in Bergen.
a14 | The backup job runs nightly at 02:00.
a15 | Our supplier of paper cups is Verda.
a16 | The choir rehearses on Tuesdays in the old chapel.
a17 | Max is allergic to peanuts.
a18 | The apartment's rent is 1,150 euros a month.
a19 | The API rate limit is 60 requests a minute.
a20 | Jonas weighs 82 kilos and wants to reach 78.
a21 | The book club is reading a novel about a lighthouse keeper.
a22 | Deployments need the approval of two reviewers.
a23 | Nadia's flight to Oslo leaves on Friday morning.
a24 | The plumber's number is on the card behind the door.
a25 | The garden fence will be painted green.
b1 | Priya moved: she now sits on the fifth floor by the kitchen.
b2 | We upgraded staging last night, it is on PostgreSQL 16 now.
b3 | Dr. Halloran has retired; we go to Dr. Osei in the harbour quarter from now on.
b4 | Correction: stand-up has been pushed back to ten o'clock.
b6 | The app launch slipped, the new date is the second of April.
b7 | Tomas sold the Skoda and bought an electric Renault.
b9 | Finance cut the training allowance to 2,500 euros for each of us.
b10 | Grandma has moved to Porto to be near the hospital.
b11 | Please send bills to billing@northwind.example instead, the old mailbox is closed.
b12 | The bakery has new hours and stays open until eight.
b13 | Lena changed her subject, she is doing data science now.
b14 | The nightly backup was moved to 04:30 because it collided with the index build.
b15 | Verda raised their prices, so cups come from Papira now.
b16 | Choir practice moved to Thursdays because the chapel is being repaired.
b18 | The landlord raised the rent to 1,240 euros.
b19 | The limit on the API was raised to 300 requests a minute.
b20 | Jonas reached 77 kilos and is now training for a half marathon.
b21 | The book club finished the lighthouse novel and picked a biography of a chess player.
b22 | From this month a single reviewer is enough for a deployment.
b23 | Nadia's flight was cancelled; she goes to Oslo by train on Saturday.
b25 | We decided against green: the fence gets a coat of dark blue.
c1 | The meeting room on the fourth floor has a new projector.
c2 | Production runs PostgreSQL 15 with two replicas.
c3 | The children's doctor is in the same building as the pharmacy.
c4 | The retrospective takes place every second Friday at three.
c5 | The neighbour's dog is called Biscotti.
c6 | The web shop was launched in January of last year.
c7 | Elena drives the old van on weekends.
c9 | The travel budget is decided quarter by quarter.
c10 | Grandpa used to work at the harbour of Lisbon.
c12 | The butcher next to the bakery takes cards only.
c13 | Lena's brother studies law.
c14 | The index build takes about forty minutes.
c18 | The parking space costs 80 euros extra.
c21 | The film club meets at Oskar's place.
"""

ASKED = """
Where does Priya sit now? => b1
Which version of PostgreSQL is on staging? => b2
Who is our dentist these days? => b3
What time is the stand-up? => b4
When does the mobile app launch? => b6
What car does Tomas drive? => b7
How much may each person spend on training? => b9
Where does grandma live now? => b10
Which address do invoices go to? => b11
Until when is the bakery open? => b12
What is Lena studying? => b13
At what hour does the backup job run? => b14
Who supplies our paper cups? => b15
On which day does the choir rehearse? => b16
How much is the rent? => b18
What is the rate limit of the API? => b19
How heavy is Jonas? => b20
What is the book club reading at the moment? => b21
How many reviewers must approve a deployment? => b22
How is Nadia getting to Oslo? => b23
What colour will the fence be? => b25
What is the name of our cat? => a5
What can Max not eat? => a17
Where do I find the plumber's number? => a24
"""


def load():
    return lines(TOLD, ASKED)
