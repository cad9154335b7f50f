-- The provider may have received what a charge asks for.
CREATE FUNCTION refuse_other_request() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a row of % does not change what it asks for', TG_TABLE_NAME USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER charges_fixed BEFORE UPDATE ON charges FOR EACH ROW
    WHEN (OLD.fence > 0 AND (NEW.amount_minor <> OLD.amount_minor OR NEW.currency <> OLD.currency
        OR NEW.account_id <> OLD.account_id OR NEW.method <> OLD.method OR NEW.fence < OLD.fence))
    EXECUTE FUNCTION refuse_other_request();
CREATE TRIGGER charge_refunds_fixed BEFORE UPDATE ON charge_refunds FOR EACH ROW
    WHEN (NEW.amount_minor <> OLD.amount_minor OR NEW.refund_ref <> OLD.refund_ref
        OR NEW.charge_id <> OLD.charge_id OR NEW.fence < OLD.fence)
    EXECUTE FUNCTION refuse_other_request();

-- Hosts of the previous version do not know charges: they would open pages, settle and refund beside
-- them. `revision` tells them apart, because only newer hosts count their writes.
CREATE FUNCTION refuse_previous_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a row of % has charges, which this version of the host does not know', TG_TABLE_NAME
        USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER payments_with_charges BEFORE UPDATE ON payments FOR EACH ROW
    WHEN (OLD.charge_id IS NOT NULL AND NEW.revision = OLD.revision
        AND (NEW.status, NEW.service_ref, NEW.checkout_url, NEW.starting_until)
            IS DISTINCT FROM (OLD.status, OLD.service_ref, OLD.checkout_url, OLD.starting_until))
    EXECUTE FUNCTION refuse_previous_version();
CREATE TRIGGER cards_with_charges BEFORE UPDATE ON cards FOR EACH ROW
    WHEN (OLD.charge_id IS NOT NULL AND NEW.revision = OLD.revision
        AND (NEW.status, NEW.service_ref, NEW.checkout_url)
            IS DISTINCT FROM (OLD.status, OLD.service_ref, OLD.checkout_url))
    EXECUTE FUNCTION refuse_previous_version();
CREATE TRIGGER recollections_with_charges BEFORE UPDATE ON recollections FOR EACH ROW
    WHEN (OLD.charge_id IS NOT NULL AND NEW.revision = OLD.revision
        AND (NEW.status, NEW.service_ref, NEW.checkout_url, NEW.starting_until, NEW.amount_minor)
            IS DISTINCT FROM (OLD.status, OLD.service_ref, OLD.checkout_url, OLD.starting_until, OLD.amount_minor))
    EXECUTE FUNCTION refuse_previous_version();

CREATE FUNCTION refuse_previous_refund() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    has_charges BOOLEAN;
BEGIN
    IF TG_TABLE_NAME = 'refunds' THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM %I.payments WHERE company_id = $1 AND id = $2
            AND charge_id IS NOT NULL)', TG_TABLE_SCHEMA)
        INTO has_charges USING NEW.company_id, NEW.payment_id;
    ELSE
        EXECUTE format('SELECT EXISTS (SELECT FROM %I.cards WHERE company_id = $1 AND id = $2
            AND charge_id IS NOT NULL)', TG_TABLE_SCHEMA)
        INTO has_charges USING NEW.company_id, NEW.card_id;
    END IF;
    IF has_charges THEN
        RAISE EXCEPTION 'the record of this row of % has charges, which this version of the host does not know',
            TG_TABLE_NAME USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER refunds_with_charges BEFORE INSERT OR UPDATE ON refunds FOR EACH ROW
    EXECUTE FUNCTION refuse_previous_refund();
CREATE TRIGGER card_refunds_with_charges BEFORE INSERT OR UPDATE ON card_refunds FOR EACH ROW
    EXECUTE FUNCTION refuse_previous_refund();
