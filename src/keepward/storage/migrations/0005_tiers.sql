-- Numbers of records by tier and status, which every handle compares with the sealed ones before its first read.
CREATE INDEX records_tier ON records (tenant, tier, status);
