-- Analyzes a table that has no statistics of its rows, or of so many that their number may have
-- doubled, and returns its name; NULL if there is none. Plans made for an almost empty table read all
-- rows of a company instead of one. Autovacuum does the same only after a minute, if it is on.
CREATE FUNCTION analyze_grown_table() RETURNS TEXT LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    grown TEXT;
BEGIN
    SELECT relname INTO grown
    FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
        AND (reltuples < 0 AND pg_relation_size(oid) > 500000
            OR pg_stat_get_mod_since_analyze(oid) > 500 + GREATEST(reltuples, 0)
            AND COALESCE(GREATEST(pg_stat_get_last_analyze_time(oid),
                pg_stat_get_last_autoanalyze_time(oid)) < now() - INTERVAL '10 seconds', TRUE))
    ORDER BY pg_stat_get_mod_since_analyze(oid) DESC LIMIT 1;
    IF FOUND THEN
        EXECUTE format('ANALYZE (SKIP_LOCKED) %I', grown);
    END IF;
    RETURN grown;
END $$;

-- It runs as the owner of the tables: no temporary table may take the place of one.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION analyze_grown_table SET search_path = %I, pg_temp', current_schema());
    REVOKE EXECUTE ON FUNCTION analyze_grown_table FROM PUBLIC;
END $$;

-- Finished jobs leave dead entries at the front of the indexes that claims read from.
ALTER TABLE jobs SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Deltas are of accounts other than the wallet, mostly, and do not stay: by statistics of their values,
-- PostgreSQL plans a query of the wallet's balance again for each execution.
ALTER TABLE ledger_deltas
    ALTER company_id SET STATISTICS 0,
    ALTER account SET STATISTICS 0,
    ALTER currency SET STATISTICS 0;
