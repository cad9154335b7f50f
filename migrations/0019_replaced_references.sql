-- The reference that a provider returned in place of this one. Notifications may name either; only the provider's is verified.
ALTER TABLE service_refs ADD COLUMN replaced_by TEXT;
