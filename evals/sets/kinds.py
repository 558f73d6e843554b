"""Ordinary notes of ten kinds, full of ids, hashes, file names and talk about passwords: nothing in them is secret."""

# ruff: noqa: E501

from __future__ import annotations

KINDS: dict[str, tuple[str, ...]] = {
    "chat": (
        "Hey {name}, are you still coming to {city} on {date}?", "I forgot my umbrella at {name}'s place again, it's the {w} one.", "My brother and I share the login for the streaming thing, it's a mess.",
        "Honestly, {city} was lovely; we stayed {n1} nights.", "If you ever want the recipe, just say so!", "You know what {name} told me? They are moving to {city}.", "I'd recommend the {w} trail over the {w} one, less crowded.",
        "Can you remind {name} to bring the keys?", "When you get home, tell the kids dinner is in the oven.", "We always end up at the same cafe, it's basically our office.", "It's the {w} account that needs a new photo, not mine.",
        "She said the password was too long to remember, so she wrote a song about it.", "I set an alarm for 6:{n2}, let's see.", "lol the wifi at the hotel was called {w}-{n3}", "Remember the time we lost the keys, it's funny now.",
        "{name} uses the same nickname everywhere, it's {w}.", "Forget what I said earlier about {city}, the trip is on.", "Ignore my last message, wrong chat.", "Please don't tell {name} about the party yet!", "My new bike is a {w} {n3}, it flies.",
    ),
    "meeting": (
        "Decided with {name}: the {part} rewrite starts in sprint {n2}.", "Action: {name} asks security whether the token lifetime can be longer.", "Open question: who owns the password reset page?", "Next steps: draft the key rotation plan, review on {date}.",
        "{name} presented the {part} numbers; {n3} tickets closed, {n2} reopened.", "We will use the staging account for the demo, {name} has the credentials.", "Risk: the license key expires on {date}, procurement knows.", "The access code for the garage changes, facilities will mail it.",
        "Agreed that the secret manager stays; nobody keeps secrets in chat.", "{name} objected to the new login flow, it's slower by {n3} ms.", "Minutes: approved without changes. Budget {n5} EUR.", "Retro: too many approvals, we skip the second review for docs.",
        "From now on the {part} team meets on Tuesdays.", "Priority one is the {part} outage; everything else waits.", "The steering group wants a summary that mentions {city} first.", "Agenda: 1) {part} 2) hiring 3) password policy 4) any other business",
        "Rule of the day: nobody deploys after {n1} pm on Fridays.", "The audit asked for evidence; {name} sends PR-{n4} and the log of {date}.", "Vote: {n1} for, {n1} against, postponed.", "Action items carry over: {PART}-{n4}, {PART}-{n4}.",
    ),
    "support": (
        "Ticket #{n6}: customer can't log in, password reset mail never arrives.", "Customer {n6} says the token on the invoice is unreadable.", "Replied to {name} with the link to the reset page.", "Case {uuid} escalated to tier 2, waiting for {city}.",
        "User reports error {n4} after entering the right PIN.", "session_id={uuid} shows three retries and a timeout.", "The customer's order {n9} shipped from {city}.", "Told the user where the recovery codes are shown in settings.", "She asks whether her password is visible to staff; it is not.",
        "Refund {n6} approved by {name}, {n3}.{n2} EUR.", "Device {hex16}, app version {v3}, OS 17.{n1}.", "Customer wants the API key page to be easier to find.", "Escalation: the card reader shows 'PIN blocked' since {date}.", "Login worked after clearing cookies.",
        "correlation_id: {uuid}", "Support key: the blue button under Help opens a chat.", "If the user asks about refunds, the policy page has the answer.", "Account {n9} was merged with account {n9}.", "Serial number {A2}{n9} is out of warranty.", "Feedback: 'the password rules are ridiculous'.",
    ),
    "dev": (
        "git cherry-pick {sha1} && git push origin release/{v3}", "The cache key is tenant:{part}:{hex16}.", "partition_key = {part}_{n4}", "sort_key: {part}#{date}", "idempotency_key={uuid}", "primary_key: [tenant, seq]", "foreign_key={part}_id", "public_key: see docs/keys/{w}.pub",
        "if token_count > {n4}: truncate(text)", "token = tokenizer.encode(text)[0]", "password = getpass.getpass()", "secret = config.get('{part}').secret", "assert response.status_code == {n3}", "SELECT key, value FROM {part}_settings WHERE id = '{uuid}'",
        "const key = `{part}-$" + "{id}`;", "key={part}_{w}_{n4}.parquet", "npm ci && npm run build -- --mode {w}", "def test_password_is_hashed(): ...", "The build id is {hex16}-{n4}, artefact {part}-{v3}-py3-none-any.whl.", "Bump {part} from {v3} to {v3}: resolves {PART}-{n4}.",
    ),
    "config": (
        "key: {part}.{w}.title", "token_url: https://login.internal/oauth/token", "password_file: /run/secrets/{part}", "secretName: {part}-tls", "SESSION_COOKIE_NAME={part}_session", "TOKEN_TTL_SECONDS={n4}", "PASSWORD_MIN_LENGTH={n2}", "auth: none", "api_key_header: X-Api-Key",
        "image: registry.internal/{part}@sha256:{hex64}", "etag: {hex32}", "build_number: {n6}", "key_prefix: {part}/", "API_KEY=${" + "{PART}_API_KEY}", "ssl_key_file = /etc/{part}/server.key", "encryption_key_id: {uuid}", "kms_key_alias: alias/{part}", "bucket: {part}-{w}-{n4}", "project_id: {w}-{n6}", "client_id: {uuid}",
    ),
    "log": (
        "{iso} INFO {part} session_id={uuid} opened", "{iso} WARN token expired, refreshing (attempt {n1})", "{iso} ERROR invalid password for user {name_l} from 10.0.{n1}.{n2}", "{iso} DEBUG key={part}:{hex32} hit", "{iso} INFO trace_id={hex32} span_id={hex16}", "level=info msg=\"secret rotated\" version={n2}",
        "{iso} INFO request_id={uuid} path=/v1/{part}/keys status=200", "{iso} INFO blob {hex64} stored, {n6} bytes", "{iso} WARN slow query {n4} ms key_count={n3}", "{iso} INFO user_id={uuid} logged in via sso", "{iso} INFO job {hex16} done in {n3} s", "nginx: 192.168.1.{n2} - - \"GET /login HTTP/1.1\" 200 {n4}",
        "{iso} INFO commit={sha1} deployed to {w}", "{iso} INFO event_id={hex32} channel={part}", "{iso} ERROR checksum mismatch: expected {hex32}, got {hex32}", "{iso} INFO msg_{hex16} delivered to {n2} subscribers", "{iso} INFO run {ts13}-{hex8} started", "pod/{part}-{hex8}-{w} restarted {n1} times", "{iso} INFO session={hex32} idle={n3}s", "{iso} INFO lease={uuid} key={part}",
    ),
    "household": (
        "The spare key is with {name}.", "The alarm goes off if the back door stays open.", "Bread: {n3} g flour, {n2} g butter, pinch of salt.", "The combination of lemon and thyme works well.", "The plumber comes on {date} between 8 and {n2}.", "Meter reading on {date}: {n6} kWh.", "The PIN pad of the garage needs a new battery.",
        "Paint for the hall: {w} white, code NCS S {n4}-Y.", "Filter size is {n2}x{n2}x{n1} inches.", "The safe in the hotel was too small for the laptop.", "The bin code is yellow for plastic.", "{name} keeps the router behind the sofa; the password is on the sticker.", "Dishwasher model {A2}{n5}, error E{n2}.", "The gate closes at {n1} pm.", "Seeds: tulip, meadow mix, {w} basil.",
        "The lock sticks when it is cold.", "We changed the locks to a new brand.", "Bike size {n2} cm, tyres {n3}x{n2}.", "The door code will be sent by the landlord.", "Shopping: oats, lemons, {n1} batteries AA, foil.",
    ),
    "travel": (
        "Train {n3} leaves {city} at 07:{n2} from platform {n1}.", "Booking reference {A6}, two seats, coach {n2}.", "The hotel in {city} has a lockbox; the code comes by text message.", "Passport renewal takes {n1} weeks.", "Gate {n2}, boarding at 06:{n2}.", "The rental is a grey {w}, plate {A2} {n4}.", "Tickets are in the app under orders.", "Check-in opens 24 h before; seat {n2}C is nice.",
        "Host said the keys are in the box next to the door.", "E-ticket {n9}{n3}, fare class Y.", "Flight time {n1} h {n2} min, layover in {city}.", "Visa number is on page {n1} of the form.", "The museum pass is valid for {n1} days.", "Luggage tag {A2}{n6}.", "Ferry from {city} every {n2} minutes.", "The wifi on the train is free but slow.", "Our guide in {city} was called {name}.", "Trail marker {n3}, turn left at the {w} hut.", "Insurance covers {n5} EUR.", "The login for the airline is my work mail.",
    ),
    "finance": (
        "Invoice {n6} over {n4}.{n2} EUR is due on {date}.", "Budget line {n4}: {part}, {n5} EUR.", "The token price fell by {n1}.{n1} % on {date}.", "Bought {n2} shares of {w} at {n3}.{n2}.", "Tax year 2031: receipts in the blue folder.", "Cost centre {n4}, project {PART}-{n4}.", "Salary run on {date}, {n2} people.", "The bank asked to confirm a payment to {name}.", "PO {n9} for {n2} laptops.", "Exchange rate 1.{n4} on {date}.",
        "Subscription renews on {date}, plan {w}.", "Expense report {hex8} rejected: receipt missing.", "Interest is {n1}.{n2} % a year.", "The accountant keeps the card reader and its PIN letter.", "VAT is {n2} %.", "Quote {n6} from {city} is valid for {n2} days.", "Loan: {n3} rates, last one in 20{n2}.", "Mileage {n6} km at 0.{n2}.", "Standing order on the first, cancelled by {name}.", "Payment reference RF{n2} {n4} {n4}.",
    ),
    "study": (
        "Chapter {n2}: hash functions, salts and why passwords are stretched.", "A token is the smallest unit the lexer returns.", "Key terms: entropy, cipher, nonce, secret sharing.", "Exam on {date} in room {n3}, seat {n2}.", "The public key is shared, the private key never leaves the device.", "{name} explained how a one-time pad works.", "In the novel the password to the cave is the title of the first chapter.", "Enigma settings were printed in a code book and changed daily.",
        "Flashcards: {n3} done, {n2} due.", "Theorem {n1}.{n2}: every finite group of prime order is cyclic.", "Homework {n2}: implement the session layer, due {date}.", "The secret garden is about {w} and grief.", "Password managers were compared in a study of {n3} people.", "DOI 10.{n4}/{w}.{n4}.{n5}", "arXiv:{n4}.{n5}", "Grade {n1}.{n1}, points {n2} of {n2}.", "Reading list: {w}, {w} and {w} by {name}.", "The professor said to ignore the previous slide, it had a typo.", "Notes on RSA: n = p * q, choose e, compute d.", "Lecture {n2} is about {city} in the {n2}th century.",
    ),
}  # fmt: skip
