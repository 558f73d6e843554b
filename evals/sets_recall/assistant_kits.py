# ruff: noqa: E501
"""Topics of long chats with an assistant: what a user says of each, what is asked later, words for advice.

Invariants
(1) A question never repeats the wording of its evidence; capitals in braces are drawn for each chat.
(2) The first six topics are for developing on; the others are only told in the half that is kept unread.
"""

#: `kind: evidence ~ evidence => question`; words of the topic for advice that bears on nothing asked.
KITS = """
# budget app
nouns: transaction table, category filter, login form, monthly chart, export button, currency field, session cookie, database index, import script, summary view, date picker, unit test, error message, settings page
verbs: validate, cache, refactor, paginate, document, isolate, mock, profile
code: yes
fact: I keep the whole thing on a little Raspberry Pi in my hallway closet. => Which machine does my money tool run on?
fact: {P} from accounting has agreed to be the very first person to try it. => Who volunteered as the earliest tester?
fact: We write everything to SQLite because I never want to administer a server. => What kind of storage did I settle on, and for which reason?
advice: For hashing the sign-in secrets I would pick argon2 with a memory cost of {N} MiB. => What did you recommend for protecting people's passwords?
advice: My suggestion is to round every amount half to even, which banks do as well. => How did you tell me to deal with fractions of a cent?
update: The first public version is due on {month} {n}. ~ We had to shift the public version, it goes out on {month2} {m} now. => When do I have to be ready with the release?
update: Test coverage stands at {n}0 percent right now. ~ After this weekend the tests reach {m} percent of the code. => How much of my code is exercised by tests?
instruction: Whenever you show me code from here on, please add type hints to every function. => Could you sketch a helper that converts currencies?
instruction: Please always name the exact version when you bring up some package. => Which libraries would be good for drawing my charts?
order: I got the sign-in screen to work at last. ~ Today I finished the part that reads bank statements. ~ The pie charts of expenses are drawn properly since this morning. => In what sequence did I build the pieces of my tool?
contradiction: I have never written a single line of Flask in my life. ~ The Flask blueprint that I wrote for the reports works nicely. => Do I have any experience with that web framework?
sum: I fixed {n} bugs in the statement reader tonight. ~ Another {m} bugs are gone, all of them in the forms. ~ Squashed {o} more bugs in the chart code on {day}. => What is the total of defects I have taken care of?
advicesum: Use Waitress in front of it while you are on the small machine. ~ Put Caddy before it, which renews certificates by itself. ~ Let Litestream copy the data off the device. => Which programs did you propose to run beside my money tool?
adviceorder: I would begin with a table of accounts and nothing else. ~ Next add recurring payments as templates. ~ Then let people share a household. => In what order did you advise me to grow the data model?
never: Which bank do I hold my savings with?
never: What is the colour of my tool's logo?

# kitchen renovation
nouns: worktop, base cabinet, extractor hood, splashback tile, floor level, socket outlet, drawer front, sink cutout, plinth, lighting strip, water valve, wall unit, grout line, delivery window
verbs: measure, seal, level, order, sketch, label, compare, dry-fit
fact: The room is only {n} metres by {m}, with a slope under the window. => How large is the space we are redoing?
fact: {P} is doing the plumbing, since he did our bathroom well. => Whom did I hire for the water pipes?
fact: We cook on induction, as the gas line was capped years ago. => What sort of hob do we use?
advice: For a surface that forgives hot pans I would choose sintered stone at twelve millimetres. => Which material did you favour for the counter?
advice: I suggest hanging the tall cupboards with a rail, {N} centimetres above the floor. => How did you say the upper storage should be fixed?
update: We have put {N} hundred euros aside for the whole job. ~ My mother chipped in, so there are {K} hundred euros for it now. => What can we spend on the room altogether?
update: The fitters come on {day}. ~ The firm called: they can only start on {day2}. => On which weekday does the installation begin?
instruction: Give all lengths in centimetres to me, never in inches, please. => How deep should a drawer for pots be?
instruction: From today please finish each plan with a list of what could go wrong. => Can you lay out the steps for tiling behind the stove?
order: The old units are out and in the skip. ~ We had the electrician rewire the ring main. ~ The walls have been plastered and are drying. => How did the building work proceed, step by step?
contradiction: I have never held a tile cutter. ~ The tiles I cut last year for the porch look fine still. => Have I cut tiles before?
sum: I paid {N} euros for handles. ~ The tap cost me {K} euros in a sale. ~ Spent {M} euros on paint. => How much money went into small purchases so far?
advicesum: Look at Howdens for the carcasses. ~ The fronts I would get from Reform. ~ Have the slab cut by Lundhs. => Which suppliers did you point me to?
adviceorder: Start by drawing a plan of every socket. ~ After that fix the place of the sink. ~ Only then choose the fridge. => In which order did you tell me to plan?
never: Which brand is our dishwasher?
never: How old is the house?

# marathon training
nouns: long run, tempo session, recovery jog, interval, hill repeat, cadence, heart rate zone, taper, fuelling plan, warm-up, foam roller, rest day, shoe rotation, stride
verbs: schedule, shorten, log, alternate, pace, skip, monitor, combine
fact: The race I signed up for is the one in {C}. => In which town will I compete?
fact: My physio, {P}, found a stiff ankle on my left side. => What did the specialist notice about my body, and what is the name?
fact: I only have time before six in the morning, the children wake up afterwards. => At what hour do I exercise?
advice: For your gut I would try rice syrup gels, one every {n} kilometres. => Which nutrition did you propose while I am on the road?
advice: Given the ankle I suggest a shoe with an eight millimetre drop. => What footwear did you consider right for me?
update: I want to finish in {n} hours and fifty minutes. ~ After the half in {D} I aim for {n} hours and {M} minutes. => What finishing time am I after?
update: My weekly distance is {N} kilometres. ~ I am up to {K} kilometres a week. => How far do I go in seven days?
instruction: When you write me a schedule, put it into a table with one row a day, always. => Can you plan the coming fortnight for me?
instruction: Never recommend painkillers to me, not even mild ones. => What helps with sore legs?
order: I did my first fifteen kilometres without a break. ~ The lactate test at the institute is done. ~ I ran the half in {D} on a wet day. => What were the milestones of my preparation, from first to last?
contradiction: I have never run a race with a number on my chest. ~ In the ten kilometre race two years ago I started far too fast. => Have I taken part in a competition before?
sum: This week I climbed {N} metres of hills. ~ {K} metres of climbing since {day}. ~ The trail added {M} metres of ascent. => How much elevation have I collected overall?
advicesum: Read the book by Daniels on pacing. ~ Noakes has the best chapters on drinking. ~ For the mind I like Fitzgerald. => Which authors did you tell me to read?
adviceorder: First we build a base without any speed. ~ Then come short hills once a week. ~ At last race pace in long blocks. => How did you structure my phases over time?
never: Which football club do I support?
never: What is my resting pulse?

# novel manuscript
nouns: opening chapter, subplot, narrator, dialogue tag, flashback, antagonist, pacing, scene break, cliffhanger, metaphor, first draft, beta reader, motif, epilogue
verbs: tighten, rewrite, foreshadow, trim, outline, contrast, slow down, reveal
fact: My heroine is called {P} and mends clocks in {C}. => What does the main character do for a living?
fact: It is told by her dead brother, which nobody knows until the end. => From whose point of view is the story?
fact: I type on an old machine without a network so that nothing distracts me. => With what do I write?
advice: As a title I would take "The {N}th Hour", it has a ring to it. => What did you think the book should be called?
advice: I suggest to let the mayor burn the letters in the {n}th chapter. => What should happen to the correspondence according to you?
update: The manuscript has {N} thousand words. ~ It has grown, I counted {K} thousand words. => How long is my text?
update: My agent wants it by {month}. ~ I got more time from my agent, she needs it in {month2}. => What deadline was I given for handing it in?
instruction: Do not ever use adverbs ending in -ly in the samples you write for me. => Could you draft a paragraph in which she enters the workshop?
instruction: Please give critique with exactly three points, the harshest one first. => What do you think of the start of my story?
order: I wrote the funeral today. ~ The scene in the bell tower is on paper. ~ I rewrote the trial from scratch. => Which parts did I work on, one after another?
contradiction: Nobody has read any of it so far. ~ {Q} read the first half and cried at the end of it. => Has someone seen my pages?
sum: I cut {n} pages. ~ {m} pages went into the bin on {day}. ~ Threw away {o} pages of the harbour part. => How much did I remove in all?
advicesum: Try a scene with the beekeeper. ~ Bring in a customs officer. ~ A deaf organist would serve as witness. => Which minor characters did you come up with?
adviceorder: Find out first what she wants. ~ Then take it away from her. ~ In the end give her what she needs. => What steps did you lay out for her arc?
never: Which publisher has my contract?
never: How many sisters do I have?

# beekeeping
nouns: brood frame, queen excluder, smoker, super, varroa board, entrance reducer, sugar syrup, wax foundation, swarm cell, hive stand, drone comb, mite count, honey extractor, winter cluster
verbs: inspect, replace, feed, weigh, insulate, mark, split, treat
fact: The hives are behind the chapel in {C}, on land that belongs to my uncle. => Where do I keep my insects?
fact: I am allergic to nuts but stings do nothing to me. => Which sensitivities do I have?
fact: {P} lends me the spinner every August. => From whom do I borrow the machine for the harvest?
advice: Against the mites I would use formic acid pads for {n} days. => Which cure did you propose for the parasites?
advice: I suggest painting the boxes with linseed oil, nothing else. => How did you advise me to protect the wood?
update: I look after {n} colonies. ~ With the two swarms there are {m} colonies in my care. => How many families of bees do I own?
update: I sell a jar for {n} euros. ~ From now on a jar is {m} euros at my stall. => What price do I ask for?
instruction: Use Latin names next to the common ones for every plant you mention. => What could I sow for late forage?
instruction: I would like warnings to come at the very top of whatever you write. => How do I move boxes over a long distance?
order: The queen was marked blue. ~ I put the honey boxes on. ~ The first harvest is in the bucket. => How did my season go, in the right order?
contradiction: I have never been stung. ~ When I was stung at the eyelid in spring, it swelled for three days. => Did a bee ever hurt me?
sum: I took {N} kilos of honey off. ~ Another {K} kilos came from the linden trees. ~ {M} kilos of heather honey are settled. => What did I harvest in total?
advicesum: Plant phacelia by the fence. ~ Add borage to the strip. ~ Ivy on the wall feeds them late. => What did you tell me to grow for them?
adviceorder: Check the stores before anything else. ~ Reduce the entrance afterwards. ~ Wrap the boxes when frost comes. => In what order did you want me to get ready for the cold?
never: Which car do I use to carry the boxes?
never: What is the name of my veterinary officer?

# job search
nouns: cover letter, portfolio, recruiter call, salary band, reference, case study, headline, application form, interview panel, notice period, network contact, job advert, follow-up mail, skill matrix
verbs: tailor, shorten, rehearse, track, negotiate, research, quantify, proofread
fact: I studied hydrology in {C} before I drifted into software. => What was my subject at university?
fact: I have to stay within cycling distance because of my son's school. => Why can I not relocate?
fact: {P} was my boss at the water board and will speak for me. => Who would vouch for me?
advice: I would name a figure of {K} thousand first and stay silent after it. => How did you coach me to talk about pay?
advice: My advice is to open with the flood in the data centre, told in ninety seconds. => Which story should I begin with when I introduce myself, in your opinion?
update: I have sent off {n} applications. ~ With the two of last night it is {m} applications. => To how many places have I written?
update: The second conversation with Aqualis is on {day}. ~ Aqualis moved our second conversation to {day2}. => When do I meet the water company again?
instruction: Write everything for me in British spelling, please, always. => Could you draft a thank-you note after the talk?
instruction: When you correct a text of mine, show the old and the new wording side by side. => Would you look over my profile summary?
order: I cleaned up my profile on the net. ~ The portfolio site went live. ~ I had the phone screening with a start-up. => What did I get done for my search, from the beginning?
contradiction: I have never managed anybody. ~ The {n} people that I managed at the water board still write to me. => Do I have leadership experience?
sum: I spent {n} hours on the take-home task. ~ {m} hours went into preparing slides. ~ Practised whiteboard questions for {o} hours. => How long did I prepare altogether?
advicesum: Have a look at Deltares. ~ I could see you at Xylem. ~ Royal Eijkelkamp hires people like you. => Which employers did you bring up?
adviceorder: Write the stories down before all else. ~ Then say them to a friend. ~ Record yourself at the end. => What order did you propose for practising?
never: How large is my flat?
never: Which languages does my wife speak?

# home server
nouns: backup job, reverse proxy, disk pool, firewall rule, container image, DNS record, VPN tunnel, log file, power supply, mount point, health check, media folder, cron entry, access point
verbs: snapshot, restart, monitor, encrypt, migrate, harden, throttle, document
code: yes
fact: The box sits in the attic, where it gets to thirty-five degrees in July. => Where did I put the computer, and how warm is it there?
fact: {P} has the only other key to the cabinet. => Who else can open the locker?
fact: I chose ZFS after a file rotted on my old drive. => Which file system do I use and what led to it?
advice: For alerts I would set ntfy to ping you after {n} failed probes. => How did you want me to be told of outages?
advice: I suggest a fanless supply of {K} watts. => What did you recommend to feed it with electricity?
update: There are {n} disks in the pool. ~ I added some, so the pool is made of {m} disks. => How many drives does the array have?
update: The nightly copy runs at {n} o'clock. ~ It clashed with updates, the nightly copy starts at {m} now. => At what time is everything saved?
instruction: Show me shell commands for fish only, I do not use bash. => How do I list the largest folders?
instruction: Explain every flag of a command that you give me, please, from now on. => How can I copy a disk over the network?
order: The operating system is installed. ~ I moved the photos over. ~ The tunnel to my parents' house works. => How did the set-up come together over the weeks?
contradiction: I have never lost any data. ~ The wedding video that I lost in the crash still hurts. => Did I ever lose files?
sum: Copied {N} gigabytes of music. ~ The films are {K} gigabytes. ~ {M} gigabytes of scans went on it on {day}. => How much have I put on the machine altogether?
advicesum: Jellyfin would play the films. ~ Try Immich for the pictures. ~ Paperless takes your letters. => Which services did you tell me to install?
adviceorder: Secure the login first of all. ~ Then test a restore. ~ Open it to the outside at the very end. => What sequence did you lay down for going live?
never: Which provider brings the internet to my house?
never: What did the rack cost?

# wedding planning
nouns: guest list, seating plan, florist, vow, caterer, dance floor, invitation, ring box, rain plan, photographer, toast, table linen, ceremony, shuttle bus
verbs: confirm, book, shortlist, print, rehearse, assign, taste, budget
fact: We marry in the old glassworks near {C}. => What is the venue?
fact: {P} will lead the ceremony, she taught us both physics. => Who is going to marry us?
fact: My fiancé cannot be near lilies without sneezing. => Which flower must be avoided, and for whom?
advice: For the first dance I would choose a slow foxtrot of {n} minutes. => What did you suggest we open the evening with?
advice: I suggest serving the cake at {n} in the afternoon, before the speeches. => When should dessert come, as you saw it?
update: We invited {N} guests. ~ After my aunts were added, {K} guests are invited. => How many people did we ask to come?
update: The band is booked for {month}. ~ The band and all else moved to {month2}. => Which month is the feast?
instruction: Please never mention prices in dollars, we pay in Czech crowns. => What does a string trio cost?
instruction: Address both of us by name whenever you write a text for guests. => Could you word the invitation?
order: The dress is chosen. ~ We tasted four menus. ~ All the cards are in the post. => What did we tick off, and in which order?
contradiction: I have never been to a wedding. ~ At the wedding of {Q} I caught the bouquet. => Was I ever a guest at such a feast?
sum: {n} cousins have said yes. ~ {m} friends from the choir confirmed. ~ {o} colleagues will come too. => How many acceptances do we have?
advicesum: Ask Studio Lumen for the pictures. ~ Let Petrichor do the flowers. ~ Karavan serves well outdoors. => Which firms did you name for the day?
adviceorder: Agree on the number of people at first. ~ Choose the place by that. ~ Leave the music for the end. => In which order should we decide, in your view?
never: Where do we go on our honeymoon?
never: What does my ring look like?

# learning piano
nouns: left hand, metronome, scale, pedal, chord inversion, sight reading, arpeggio, fingering, lesson plan, trill, phrase, dynamics, octave leap, practice diary
verbs: repeat, slow down, memorise, separate, record, count, relax, accent
fact: I play on an upright from 1912 that came with the house. => What instrument do I have?
fact: My teacher {P} studied in {C} with a pupil of Arrau. => Where was my tutor trained?
fact: I broke my ring finger as a boy, it still bends poorly. => Which injury hinders me?
advice: I would take the Prelude in E minor at {N} beats a minute. => What tempo did you give me for the piece?
advice: My suggestion is to practise with a coin on the back of the hand. => Which trick against tension did you show me?
update: I practise {N} minutes a day. ~ Since the holidays I practise {K} minutes daily. => How long do I sit at the keys each day?
update: The exam is in {month}. ~ They put the exam off until {month2}. => When am I being examined?
instruction: Use German note names with me, so H instead of B. => How do I play a dominant seventh on G?
instruction: Please put no more than one exercise into a reply, ever. => How can I improve my wrist?
order: I can play the hymn by heart. ~ The sonatina sits well now. ~ I got through the waltz without stopping. => Which works did I master, one after the other?
contradiction: I have never played in front of people. ~ When I played at the library last winter my knees shook. => Have I performed before an audience?
sum: I learned {n} bars of the fugue. ~ {m} further bars are in my fingers. ~ On {day} I added {o} bars. => How far have I come in the fugue, all counted?
advicesum: Get the Mikrokosmos. ~ Burgmüller has lovely studies. ~ Kabalevsky would suit you next. => Which composers did you have in mind for me?
adviceorder: Learn the bass alone to begin. ~ Then say the rhythm aloud. ~ Put both together last. => How did you tell me to approach a new score, in order?
never: How much do I pay for a lesson?
never: Which singer do I like best?

# research thesis
nouns: literature review, survey item, control group, effect size, citation, supervisor meeting, research question, pilot study, abstract, data table, ethics form, regression model, footnote, margin note
verbs: cite, code, pre-register, summarise, replicate, narrow, plot, justify
code: yes
fact: I study how bilingual children in {C} tell jokes. => What is the topic of my dissertation?
fact: {P} supervises me and answers only on Sundays. => Who guides my work, and when does this person reply?
fact: The recordings are locked in the phonetics lab, nothing leaves the building. => Where is my raw material stored?
advice: I would report the odds with a {n}5 percent interval, never the bare p. => Which statistics did you ask me to give?
advice: I suggest calling the second chapter "Laughing Twice". => What heading did you propose?
update: {N} families take part. ~ More signed up, {K} families take part by now. => How many households are in my sample?
update: The defence is set for {month} {n}. ~ My defence was rescheduled to {month2} {m}. => When do I defend?
instruction: Cite in Chicago style for me and in no other. => How do I refer to a recording?
instruction: When I ask for a summary keep it below fifty words, always. => Can you sum up what priming means?
order: The ethics board said yes. ~ I transcribed the pilot. ~ The second round of interviews is over. => How did my project advance from stage to stage?
contradiction: I have never used R. ~ My R script for the mixed model broke again. => Am I familiar with that statistics language?
sum: I transcribed {n} hours of tape. ~ {m} hours more are typed up. ~ {o} hours of sessions were finished on {day}. => How much audio did I turn into text?
advicesum: Read Attardo on scripts. ~ Bialystok would help you there. ~ Ruch wrote about measuring it. => Which scholars did you refer me to?
adviceorder: Fix the coding scheme first. ~ Train a second rater after it. ~ Compute agreement before you touch the rest. => What steps did you give me for the annotation?
never: Which scholarship pays for me?
never: What was my grade in school?

# vegetable garden
nouns: raised bed, compost heap, seed tray, tomato trellis, irrigation hose, mulch layer, crop rotation, cold frame, soil test, slug fence, leaf spot, pruning cut, rain barrel, companion plant
verbs: water, thin, rotate, mulch, prune, shade, transplant, harvest
fact: My plot is number {N}, right by the railway in {C}. => Which allotment is mine?
fact: {P} next door waters for me when I am on shift. => Who looks after it in my absence?
fact: The ground is sandy and dries out by noon. => What is my earth like?
advice: Against the slugs I would lay a copper band of {n} centimetres. => How did you tell me to stop the snails?
advice: I suggest growing the beans up a bicycle wheel. => What did you think the climbers should climb on?
update: There are {n} beds. ~ I dug another, so {m} beds are ready now. => How many patches do I plant?
update: I open the gate for visitors on {day}. ~ The open gate is on {day2} from this month on. => On which day may people come?
instruction: Only suggest what needs no greenhouse, please, always. => What could I start in March?
instruction: Answer with the moon calendar in mind, my grandmother insists on it. => When should I cut back the berries?
order: The fence is up. ~ I sowed the peas. ~ We ate our first lettuce. => What happened on my plot this year, in sequence?
contradiction: I have never grown a potato. ~ The potatoes I grew in the tower last summer were tiny. => Did I grow potatoes before?
sum: I picked {n} kilos of courgettes. ~ {m} kilos of beans were ripe. ~ {o} kilos of plums came off the tree on {day}. => How heavy was everything I gathered?
advicesum: Try the tomato Matina. ~ Sow the carrot Milan. ~ Plant the pumpkin Hokkaido. => Which varieties did you name?
adviceorder: Test the ground to start with. ~ Add leaf mould in autumn. ~ Lime it only in the second year. => How was I to improve the earth, step after step?
never: What do I pay for the lease?
never: Which tractor does the club own?

# freelance illustration
nouns: colour palette, client brief, layer mask, invoice template, print bleed, licence clause, thumbnail sketch, reference photo, brush preset, revision round, portfolio page, deadline, mood board, line weight
verbs: sketch, vectorise, invoice, archive, simplify, proof, negotiate, crop
fact: I draw on a tablet that {P} left me when she moved to {C}. => From whom do I have my drawing device?
fact: I see no difference between teal and grey. => Which colours can I not tell apart?
fact: My largest customer is a museum of lighthouses. => For whom do I work most?
advice: I would charge a usage fee of {n}0 percent on top. => What surcharge did you recommend?
advice: I suggest signing with a tiny heron in the lower left. => How should my mark look, in your opinion?
update: My rate is {N} an hour. ~ From this quarter I take {K} an hour. => What do I charge for my time?
update: The picture book is due in {month}. ~ The publisher lets me deliver the picture book in {month2}. => When must the children's book be done?
instruction: Give colours as hex codes whenever you talk of them. => Which hues go with a stormy sea?
instruction: Please write to my clients formally, without any exclamation marks. => Can you draft a reminder for an unpaid bill?
order: The contract is signed. ~ The cover sketch got approved. ~ All spreads are inked. => How did the commission develop?
contradiction: I have never worked on paper. ~ The paper collages I sold in May paid the rent. => Do I work with traditional media?
sum: A bakery paid me {N} euros. ~ {K} euros came in from the museum. ~ The calendar brought {M} euros on {day}. => What did I earn altogether?
advicesum: Put your work on Behance. ~ Apply to the fair in Bologna. ~ Write to the Folio Society. => Where did you advise me to show my pictures?
adviceorder: Ask for the brief in writing to begin. ~ Send three rough ideas. ~ Take half of the money before inking. => What procedure did you lay out for commissions?
never: Who does my taxes?
never: What is the size of my studio?
"""
