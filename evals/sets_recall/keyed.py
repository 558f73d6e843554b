"""Project notes under keys and tags: identifiers, versions, commands, short decisions."""

from evals.sets_recall import lines

# key | tags | text
_NOTES = """
build.command | ci | make dist runs the linter, the tests and then the wheel build.
deploy.target | ops | The service is deployed to the cluster in Frankfurt.
db.migrations | db | Migrations are numbered files and only ever go forward.
db.pool_size | db tuning | Twenty connections; more than that starved the batch workers.
auth.token_ttl | security | Access tokens live for fifteen minutes, refresh tokens for a week.
auth.provider | security | We log in through Keycloak, realm "orchard".
api.pagination | api | Lists are paged with an opaque cursor, never with an offset.
api.errors | api | Errors follow RFC 9457 problem details.
style.python | style | Line length is 110, type hints everywhere, no star imports.
style.commits | style git | Subjects are in the imperative and under sixty characters.
git.branching | git | Short branches off main, squash on merge, no release branches.
release.cadence | ops release | We release every other Wednesday before noon.
release.owner | release | Whoever is on call prepares the changelog.
oncall.rota | ops | The rota changes on Monday at eight, the list is in the handbook.
incident.INC-2041 | incident | The outage of May was caused by an expired certificate on the gateway.
incident.INC-2077 | incident | Queue workers hung because of a deadlock in the retry table.
incident.INC-2102 | incident | A full disk on the log host took search down for an hour.
queue.backend | infra | We use NATS JetStream; Kafka was too heavy for three services.
cache.policy | infra | Entries expire after ninety seconds, stampedes are held back by a lock.
search.engine | infra | Product search moved from Solr to Typesense last autumn.
front.framework | web | The front end is written in Svelte with TypeScript.
front.bundle_budget | web performance | The main bundle must stay under 180 kB compressed.
front.i18n | web | Texts live in ICU message files, German and English are complete.
tests.flaky | tests | test_checkout_timeout fails about once in fifty runs on the slow runner.
tests.fixtures | tests | Test data is made by factories, never by dumps of production.
observability.tracing | ops | Traces are sampled at five per cent, errors always.
observability.alerts | ops | Pages go out only for symptoms that users notice.
secrets.store | security | Secrets live in Vault and are mounted as files, not as variables.
payments.provider | payments | Cards are handled by Adyen, bank transfers by our own adapter.
payments.refunds | payments | Refunds over 500 euros need a second person.
mail.sender | infra | Mail goes out through our own relay, the bounce address is bounces@orchard.example.
images.pipeline | media | Pictures are resized to WebP on upload, originals are kept for a year.
legal.retention | legal | Order data is kept for ten years, server logs for thirty days.
legal.dpo | legal | Questions about privacy go to Marit in the Utrecht office.
hiring.process | people | Two interviews and a paid trial day, an answer within a week.
vendor.contract | legal | The hosting contract runs until the end of 2027 with three months' notice.
perf.checkout | performance | checkoutSummary takes 240 ms at p95; the goal is 150.
perf.cold_start | performance | A cold start takes nine seconds, most of it loading the tax tables.
feature.dark_mode | web feature | Dark mode is behind the flag ui_dark and on for staff.
feature.gift_cards | feature | Gift cards were postponed until the new ledger is in place.
"""

ASKED = """
How do I build the package? => build.command
Where does the service run? => deploy.target
How many database connections do we allow? => db.pool_size
How long is an access token valid? => auth.token_ttl
What do we use for single sign-on? => auth.provider
How does paging work in our API? => api.pagination
Which format do error responses have? => api.errors
What is the maximum line length? => style.python
How should commit messages look? => style.commits
Do we have release branches? => git.branching
When do we ship a new version? => release.cadence
Who writes the changelog? => release.owner
What happened in INC-2077? => incident.INC-2077
Which incident had to do with a certificate? => incident.INC-2041
Why was search down? => incident.INC-2102
Why did we not choose Kafka? => queue.backend
How long are cached entries kept? => cache.policy
What replaced Solr? => search.engine
How big may the bundle be? => front.bundle_budget
Which languages are translated? => front.i18n
Which test is unreliable? => tests.flaky
May I use a production dump in tests? => tests.fixtures
What share of traces do we keep? => observability.tracing
When does somebody get paged? => observability.alerts
Where are the passwords kept? => secrets.store
Who processes card payments? => payments.provider
Can I give back 800 euros on my own? => payments.refunds
How long do we store orders? => legal.retention
Whom do I ask about data protection? => legal.dpo
How slow is checkoutSummary? => perf.checkout
Why does it take so long to start? => perf.cold_start
What is the flag ui_dark for? => feature.dark_mode
db migrations rule => db.migrations
What is going on with gift cards? => feature.gift_cards
"""


def load():
    notes = [[cell.strip() for cell in line.split("|", 2)] for line in _NOTES.strip().splitlines()]
    told = [{"id": key, "key": key, "tags": tuple(tags.split()), "text": text} for key, tags, text in notes]
    return told, lines("", ASKED)[1]
