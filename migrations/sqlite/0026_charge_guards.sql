-- The provider may have received what a charge asks for.
CREATE TRIGGER charges_fixed BEFORE UPDATE ON charges
WHEN OLD.fence > 0 AND (NEW.amount_minor <> OLD.amount_minor OR NEW.currency <> OLD.currency
    OR NEW.account_id <> OLD.account_id OR NEW.method <> OLD.method OR NEW.fence < OLD.fence)
BEGIN SELECT RAISE(ABORT, 'a requested charge does not change what it asks for'); END;

CREATE TRIGGER charge_refunds_fixed BEFORE UPDATE ON charge_refunds
WHEN NEW.amount_minor <> OLD.amount_minor OR NEW.refund_ref <> OLD.refund_ref
    OR NEW.charge_id <> OLD.charge_id OR NEW.fence < OLD.fence
BEGIN SELECT RAISE(ABORT, 'a refund does not change what it asks for'); END;
