-- Scopes in order, without regard to case: the scopes below a path, and scopes that differ only in case.
CREATE INDEX records_scope ON records (tenant, lower(scope), scope) WHERE status = 'active';
