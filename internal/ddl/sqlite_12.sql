-- Which version of the schema a program must know, at least, to work on tables of this version: a program that is older than
-- the tables goes by it. NULL: the version itself.
ALTER TABLE {{.}}goose_db_version ADD COLUMN oldest INTEGER;
