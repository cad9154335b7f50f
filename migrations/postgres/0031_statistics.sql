-- Analyzes one table of which, since it was last analyzed, as many rows have changed as it had, and
-- 500 more; or which is larger than 0.5 MB and was never analyzed. PostgreSQL plans statements by
-- these statistics: for an almost empty table it may read all rows of a company instead of one.
-- Autovacuum does the same after a minute, unless it is off. Tables above 1 GB are left to it,
-- because their samples may take longer than a transaction.
CREATE FUNCTION analyze_grown_table() RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    grown TEXT;
BEGIN
    SELECT relname INTO grown
    FROM pg_class
    WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
        AND relkind = 'r' AND pg_has_role(relowner, 'USAGE')
        AND pg_relation_size(oid) < 1000000000
        AND (reltuples < 0 AND pg_relation_size(oid) > 500000
            OR pg_stat_get_mod_since_analyze(oid) > 500 + GREATEST(reltuples, 0)
            AND COALESCE(GREATEST(pg_stat_get_last_analyze_time(oid),
                pg_stat_get_last_autoanalyze_time(oid)) < now() - INTERVAL '10 seconds', TRUE))
    ORDER BY random() LIMIT 1; -- so that a locked table does not block the others
    IF FOUND THEN
        EXECUTE format('ANALYZE (SKIP_LOCKED) %I', grown);
    END IF;
END $$;

-- It runs as the owner of the tables: no temporary table may take the place of one.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION analyze_grown_table SET search_path = %I, pg_temp', current_schema());
    REVOKE EXECUTE ON FUNCTION analyze_grown_table FROM PUBLIC;
END $$;

-- Finished jobs leave dead entries at the front of the indexes that claims read from.
ALTER TABLE jobs SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Most deltas belong to other accounts than the wallet. With statistics that show this, PostgreSQL
-- makes a new plan for each query of a wallet's balance.
ALTER TABLE ledger_deltas
    ALTER company_id SET (n_distinct = -1),
    ALTER account SET (n_distinct = -1),
    ALTER currency SET (n_distinct = -1);
