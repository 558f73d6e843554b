"""Two hundred questions about nothing that any of our sets tells: the right answer is that nothing is remembered.

Half ask a person for what was never told of a life or a job, half are what one asks anybody. They were written without
looking at a score. The first of each two served to choose the floor's constants, the second was left unread until then.
"""

from typing import Final

ASKED: Final = """
What is my blood type?
When did we last have the chimney swept?
Who taught me how to ski?
Which tyres are on the caravan?
What did I name my first hamster?
How many marathons has uncle Pete finished?
What was the score of the volleyball final?
Which hospital was I born in?
What is the serial number of the dishwasher?
Who is the godmother of Clara?
How tall is the oak behind the barn?
When does my gym membership renew?
Which brand of paint did we use for the boat?
What was the name of the hotel in Marrakesh?
Who won the pumpkin contest?
How much did the sewing machine cost?
Which shoes did I order for hiking?
What is the combination of the locker at the pool?
When did Harold retire from the navy?
Which poem did Sofia recite at the funeral?
What is the licence plate of the tractor?
Who repaired the windmill after the storm?
How many beehives does Anton keep?
Which vaccine did the pony get?
What ring size does Beatrice have?
When was the harpsichord last tuned?
Which seat did I have at the opera?
Who borrowed the circular saw?
How many pages has my thesis on glaciers?
What was the diagnosis of the orthopaedist?
Which perfume does Margot wear?
What did the surveyor say about the boundary?
When is the christening of the twins?
Which theatre group did Hugo join?
How much wood did we stack last autumn?
Who painted the portrait over the fireplace?
What is the pin of the old tablet?
When did the beavers come back to the creek?
Which visa did Ling apply for?
How many goals did Nico score this season?
What did the vet say about the hedgehog?
Who is the trainer of the judo class?
Which island did we anchor at?
When was the well drilled?
What is grandpa's recipe for plum jam?
Which scout troop did Felix lead?
How long was the queue at the embassy?
Who sold us the trampoline?
What colour was the bridesmaid's dress?
Which camp site had the hot spring?
Who leads the works council?
What is the margin on the spring catalogue?
Which courier delivers the samples?
When is the fire drill?
How many pallets fit in hall nine?
Who negotiated the lease of the warehouse?
What is our VAT number in Norway?
Which forklift failed inspection?
When does the patent expire?
Who translated the safety manual?
What did the auditor object to?
Which trade fair are we attending in spring?
How many interns start next term?
What is the headcount of the Warsaw branch?
Which colour code has the emergency valve?
Who approved the bonus scheme?
When was the turbine overhauled?
What is the tolerance of the drill press?
Which font does the logo use?
Who writes the shareholder letter?
How many seats does the canteen in Lyon have?
What was the response rate of the survey?
Which insurance covers the drones?
When does the apprenticeship end?
Who maintains the Cobol modules?
What is the retention of the satellite images?
Which compiler flags does the firmware use?
How many teams use the design system?
What is the hash rate of the mining rig?
Which kernel does the embedded board boot?
Who owns the Terraform modules?
What is the on-call bonus?
Which branch has the Fortran solver?
How long does the simulation of the wing take?
What is the mesh size of the crash model?
Which bucket policy did we copy from the bank?
Who filed the bug about the joystick?
When do we drop support for Windows 7?
What is the checksum of the ROM?
Which microphone is in the podcast studio?
How many subscribers does the newsletter have?
Who moderates the forum?
What was the bounce rate of the campaign?
Which charity gets the proceeds of the raffle?
When is the deadline for the grant?
What is the acidity of the vineyard soil?
Which harvester did the cooperative lease?
How many litres of milk did the farm deliver?
Who designed the stained glass?
What is the depth of the quarry?
What is the boiling point of tungsten?
Who wrote the Brothers Karamazov?
How far is Neptune from the sun?
Which enzyme breaks down starch?
When was the Magna Carta sealed?
How do volcanoes form?
What causes the northern lights?
Who composed the Brandenburg concertos?
Which planet has the most moons?
How does a hydraulic press work?
What is the capital of Mongolia?
Who discovered penguins in Antarctica?
When did the Ottoman empire collapse?
Which metal is liquid at room temperature?
How many bones has the human hand?
What is the plot of Hamlet?
Who invented the telescope?
Which desert is the driest?
How do bees make honey?
What is the square root of 1764?
When did the dinosaurs die out?
Which gas do plants breathe out at night?
How is parchment made?
What does the pancreas do?
Who was the first emperor of Rome?
Which river flows through Baghdad?
How does a nuclear reactor work?
What is quantum entanglement?
Who sculpted the Thinker?
Which spices are in garam masala?
How do you fold a paper crane?
What is the offside rule?
Who holds the world record in pole vault?
Which vitamins are in spinach?
How do tides arise?
What is a palindrome?
When did humans first walk on the moon?
Which country has the longest coastline?
How is steel hardened?
What is the difference between a crocodile and an alligator?
Who was Ada Lovelace?
Which alphabet is used in Georgia?
How does photosynthesis work?
What is the speed of sound in water?
When was gunpowder invented?
Which whale dives the deepest?
How do you tie a bowline?
What is the greenhouse effect?
Who directed Seven Samurai?
Which element has the symbol W?
How are pearls formed?
What is a haiku?
Who painted Guernica?
Which mountain is the highest in Africa?
How do you calculate the volume of a cone?
What is inflation in economics?
When did the Titanic sink?
Which language is spoken in Suriname?
How does a sundial work?
What is the tallest animal?
Who founded the Mongol empire?
Which amendment ended slavery in America?
How do you make puff pastry?
What is dark matter?
When was the printing press invented?
Which instrument has 47 strings?
How do chameleons change colour?
What is the Pythagorean theorem?
Who wrote Don Quixote?
Which sea is the saltiest?
How does a combustion engine work?
What are the rules of curling?
When is the next solar eclipse?
Which blood vessels carry oxygen?
How do magnets work?
What is the currency of Vietnam?
Who was the mother of Cleopatra?
Which bird lays the largest eggs?
How do you remove rust from iron?
What does a barometer measure?
When did the Berlin wall fall?
Which chemical makes chillies hot?
How do submarines dive?
What is the meaning of serendipity?
Who built Machu Picchu?
Which moon of Jupiter has volcanoes?
How do you prune roses?
What is the Doppler effect?
When was the Suez canal opened?
Which king had six wives?
How does a sewing machine stitch?
What is the half-life of uranium?
Who sang Nessun dorma first?
Which mushrooms are poisonous?
How do you play backgammon?
What is a black hole?
When was the Eiffel tower built?
Which insects live in colonies?
How is paper recycled?
What is the longest word in the dictionary?
"""


def questions() -> tuple[list[str], list[str]]:
    """Return the half that constants were chosen on, and the other one."""
    every = [line.strip() for line in ASKED.strip().splitlines()]
    return every[0::2], every[1::2]
