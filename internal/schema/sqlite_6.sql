-- Version 6 is the SQL door of Postgres; SQLite has no functions of its own.
SELECT 1;
