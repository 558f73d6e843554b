-- Commits with their times, in the order of the chain.
CREATE INDEX commits_time ON commits (tenant, seq, at);
