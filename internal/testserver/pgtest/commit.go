package pgtest

// CommitAnswers are SQLSTATEs that a COMMIT can be answered with, and whether they leave open what became of it.
var CommitAnswers = map[string]bool{
	"23503": false, // foreign_key_violation, of a deferred constraint
	"40001": false, // serialization_failure
	"57014": false, // query_canceled, by a timeout in a deferred trigger
	"58030": false, // io_error, before the commit record
	"XX000": false, // internal_error, before the commit record
	"40003": true,  // statement_completion_unknown
	"08006": true,  // connection_failure, of a pooler
}

// AnswerCommit makes a table: the COMMIT of a transaction that inserted a code into it is answered with that code, as
// an ERROR.
const AnswerCommit = `
CREATE TABLE answers (code text NOT NULL);
CREATE FUNCTION answer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	RAISE EXCEPTION 'the commit is answered' USING ERRCODE = NEW.code;
END $$;
CREATE CONSTRAINT TRIGGER answer AFTER INSERT ON answers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION answer();`
