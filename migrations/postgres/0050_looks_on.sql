-- Views of a page that nobody searched for: it as it is found, and the pages of results behind the first. Figures leave them out.
ALTER TABLE executions ADD COLUMN looks_on BOOLEAN NOT NULL DEFAULT FALSE;
