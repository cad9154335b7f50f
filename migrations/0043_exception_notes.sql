-- The operator who works on an exception, and what operators noted: JSON `[{at, by, text}]`.
ALTER TABLE exceptions ADD COLUMN owner TEXT;
ALTER TABLE exceptions ADD COLUMN notes JSONB NOT NULL DEFAULT '[]';
