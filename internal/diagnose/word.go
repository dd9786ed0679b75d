package diagnose

// Word names a cause. The set is closed, and programs may go by it.
type Word string

// The words.
const (
	BodyLineBreak   Word = "body_line_break"
	BodyLineEndings Word = "body_line_endings"
	BodyMark        Word = "body_byte_order_mark"
	BodyWrittenAnew Word = "body_written_anew"
	BodyParsed      Word = "body_parsed"
	BodyWrapped     Word = "body_wrapped"
	BodyEncoded     Word = "body_encoded"
	BodyCharset     Word = "body_charset"
	BodyEmpty       Word = "body_empty"
	BodyCut         Word = "body_cut"

	SecretSpaces      Word = "secret_spaces"
	SecretQuoted      Word = "secret_quoted"
	SecretPrefix      Word = "secret_prefix"
	SecretEncoding    Word = "secret_encoding"
	SecretVariable    Word = "secret_variable"
	SecretPlaceholder Word = "secret_placeholder"
	SecretKind        Word = "secret_kind"
	SecretSeveral     Word = "secret_several"
	SecretParts       Word = "secret_parts"
	SecretForm        Word = "secret_form"

	URLMissing Word = "url_missing"
	URLScheme  Word = "url_scheme"
	URLHost    Word = "url_host"
	URLPath    Word = "url_path"
	URLQuery   Word = "url_query"

	HeaderMissing Word = "header_missing"
	HeaderRenamed Word = "header_renamed"
	HeaderEmpty   Word = "header_empty"
	HeaderChanged Word = "header_changed"
	ContentType   Word = "content_type"

	SignatureCut      Word = "signature_cut"
	SignatureForm     Word = "signature_form"
	SignatureHash     Word = "signature_hash"
	SignatureEncoding Word = "signature_encoding"
	SignatureContent  Word = "signature_content"

	TimeOld    Word = "time_old"
	TimeFuture Word = "time_future"
	TimeUnit   Word = "time_unit"
	TimeZone   Word = "time_zone"

	OtherProvider Word = "other_provider"
	Method        Word = "method"
	Challenge     Word = "challenge"
	OtherSecret   Word = "other_secret"
)

// Meaning is a word with what it says.
type Meaning struct {
	Word Word
	Says string
}

// Words returns all words with their meanings, for pages.
func Words() []Meaning {
	return []Meaning{
		{BodyLineBreak, "the body has a line break or spaces at one end that the sender did not sign, or lacks the ones that it did"},
		{BodyLineEndings, "its line endings were changed, between LF and CRLF"},
		{BodyMark, "an editor put a byte order mark in front of it"},
		{BodyWrittenAnew, "it is JSON that was parsed and written anew: with other spaces, line breaks or escapes"},
		{BodyParsed, "it came through a parser of forms"},
		{BodyWrapped, "the file has something around the body: quotes, the headers, the event of a cloud function"},
		{BodyEncoded, "it is compressed, or encoded in base64, or has the sizes of chunks in it"},
		{BodyCharset, "it was read as text in another character set"},
		{BodyEmpty, "it is empty, or the sender's was"},
		{BodyCut, "it has another length than the request said"},
		{SecretSpaces, "the secret has white space, a line break or something else around it that is not seen"},
		{SecretQuoted, "it has quotes around it"},
		{SecretPrefix, "it has a beginning that is not a part of it, or lacks the one that is"},
		{SecretEncoding, "it is encoded once more than the sender shows it, or was decoded"},
		{SecretVariable, "it is the name of a variable, or the line that sets one"},
		{SecretPlaceholder, "it is the text of documentation that stands for a secret"},
		{SecretKind, "it is a key for something else, such as for calling the sender's API"},
		{SecretSeveral, "several secrets were given as one"},
		{SecretParts, "its two parts are swapped, or one of them is missing"},
		{SecretForm, "it has another form than a secret of this sender"},
		{URLMissing, "the signature covers the URL, which is not given"},
		{URLScheme, "the signed URL has http: in place of https:, or the other way round"},
		{URLHost, "it has another host or port"},
		{URLPath, "it has another path, such as with a slash at its end"},
		{URLQuery, "it has another query, or none"},
		{HeaderMissing, "a header that the signature is in, or covers, did not arrive"},
		{HeaderRenamed, "it arrived under another name"},
		{HeaderEmpty, "it is there, and nothing is in it"},
		{HeaderChanged, "its value was changed: quoted, encoded, in another case"},
		{ContentType, "the body is a form, and no header says so"},
		{SignatureCut, "the signature is shorter or longer than the sender makes it"},
		{SignatureForm, "it is in no form that the sender uses"},
		{SignatureHash, "it was made with another hash function"},
		{SignatureEncoding, "it is written in another encoding"},
		{SignatureContent, "it covers something else than the specification says"},
		{TimeOld, "the signature is right, and its time too long ago"},
		{TimeFuture, "the signature is right, and its time too far ahead"},
		{TimeUnit, "a time is given in milliseconds in place of seconds, or the other way round"},
		{TimeZone, "two clocks are apart by whole hours"},
		{OtherProvider, "the request looks like that of another provider, or of another version"},
		{Method, "the request has another method than POST"},
		{Challenge, "it is a challenge that is not answered"},
		{OtherSecret, "nothing that was tried fits: it is another endpoint's or environment's secret, or the body was changed beyond repair"},
	}
}
