package dynamofake

import (
	"maps"
	"math/big"
	"slices"
	"strings"
)

// expressions are the parameters of one write that are made of expressions.
type expressions struct {
	ConditionExpression       string
	UpdateExpression          string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues values
}

// parser reads the expressions of one request, and notes which of the names and values they use.
type parser struct {
	words  []string
	names  map[string]string
	values values
	used   map[string]bool
	err    *failure
}

func (e expressions) parser() *parser {
	return &parser{names: e.ExpressionAttributeNames, values: e.ExpressionAttributeValues, used: map[string]bool{}}
}

// unused returns an error if a name or a value was given and not used.
func (p *parser) unused() *failure {
	if p.err != nil {
		return p.err
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(p.values)), slices.Collect(maps.Keys(p.names))) {
		if !p.used[name] {
			return invalid("%s was provided and is unused in expressions", name)
		}
	}
	return nil
}

// split cuts a text into words.
func split(text string) (words []string) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		n := strings.IndexFunc(text, func(r rune) bool { return !partOfWord(r) })
		switch {
		case n < 0:
			n = len(text)
		case n == 0 && len(text) > 1 && slices.Contains([]string{"<>", "<=", ">="}, text[:2]):
			n = 2
		case n == 0:
			n = 1
		}
		words, text = append(words, text[:n]), text[n:]
	}
	return words
}

func partOfWord(r rune) bool {
	return r == '_' || r == ':' || r == '#' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func (p *parser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

// next takes a word; it fails if it is not one of those that are expected, if any are.
func (p *parser) next(expected ...string) string {
	word := p.peek()
	if len(p.words) > 0 {
		p.words = p.words[1:]
	}
	if len(expected) > 0 && !slices.Contains(expected, strings.ToUpper(word)) {
		p.fail("Invalid expression: Syntax error; token: %q", word)
	}
	return word
}

func (p *parser) keyword(word string) bool {
	if !strings.EqualFold(p.peek(), word) {
		return false
	}
	p.next()
	return true
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = invalid(format, args...)
	}
}

// test is a condition on an item.
type test func(item values) bool

// condition reads a condition; none holds always.
func (p *parser) condition(text string) test {
	if p.words = split(text); len(p.words) == 0 {
		return func(values) bool { return true }
	}
	c := p.or()
	if len(p.words) > 0 {
		p.fail("Invalid ConditionExpression: Syntax error; token: %q", p.peek())
	}
	return c
}

func (p *parser) or() test {
	a := p.and()
	for p.keyword("OR") {
		left, right := a, p.and()
		a = func(i values) bool { return left(i) || right(i) }
	}
	return a
}

func (p *parser) and() test {
	a := p.one()
	for p.keyword("AND") {
		left, right := a, p.one()
		a = func(i values) bool { return left(i) && right(i) }
	}
	return a
}

func (p *parser) one() test {
	switch {
	case p.err != nil:
		return func(values) bool { return false }
	case p.keyword("("):
		c := p.or()
		p.next(")")
		return c
	case p.keyword("attribute_exists"):
		name := p.call()
		return func(i values) bool { return i[name] != nil }
	case p.keyword("attribute_not_exists"):
		name := p.call()
		return func(i values) bool { return i[name] == nil }
	}
	a := p.operand()
	operator := p.next("=", "<>", "<", "<=", ">", ">=")
	b := p.operand()
	if operator != "=" && operator != "<>" {
		p.must(a, operator, "S", "N", "B")
		p.must(b, operator, "S", "N", "B")
	}
	return func(i values) bool { return compare(a.of(i), operator, b.of(i)) }
}

// must refuses a value that the operator does not take. Of attributes that shows only when they are looked at.
func (p *parser) must(o *operand, operator string, kinds ...string) {
	if o.otherwise != nil {
		o = o.otherwise
	}
	if o.name == "" && o.value != nil && !slices.Contains(kinds, o.value.kind()) {
		p.fail("Invalid expression: Incorrect operand type for operator or function; operator: %s, operand type: %s", operator, o.value.kind())
	}
}

// call reads the one argument of a function, which is an attribute.
func (p *parser) call() string {
	p.next("(")
	name := p.name()
	p.next(")")
	return name
}

func compare(a value, operator string, b value) bool {
	equal := a != nil && b != nil && a.equal(b)
	switch operator {
	case "=":
		return equal
	case "<>":
		return !equal
	}
	order, ok := 0, false
	if a != nil && b != nil {
		order, ok = a.compare(b)
	}
	switch operator {
	case "<":
		return ok && order < 0
	case "<=":
		return ok && order <= 0
	case ">":
		return ok && order > 0
	}
	return ok && order >= 0
}

// operand is a value, an attribute, or what stands for one that is not there.
type operand struct {
	value     value
	name      string
	otherwise *operand
}

// of returns nil if there is none.
func (o *operand) of(i values) value {
	switch {
	case o.name == "":
		return o.value
	case i[o.name] == nil && o.otherwise != nil:
		return o.otherwise.of(i)
	}
	return i[o.name]
}

// reserved are some of the words that cannot name an attribute in an expression, unless it is behind a placeholder: those that
// somebody would think of.
var reserved = []string{
	"COUNT", "DATA", "DATE", "ERROR", "KEY", "KEYS", "NAME", "OWNER", "SIZE", "SOURCE", "STATE", "STATUS", "TIME", "TIMESTAMP", "TOKEN", "TTL",
	"TYPE", "VALUE", "VALUES",
}

// name reads the name of an attribute.
func (p *parser) name() string {
	word := p.next()
	if !strings.HasPrefix(word, "#") {
		if word == "" || strings.HasPrefix(word, ":") || !partOfWord(rune(word[0])) {
			p.fail("Invalid expression: Syntax error; token: %q", word)
		}
		if slices.Contains(reserved, strings.ToUpper(word)) {
			p.fail("Invalid expression: Attribute name is a reserved keyword; reserved keyword: %s", word)
		}
		return word
	}
	p.used[word] = true
	if p.names[word] == "" {
		p.fail("An expression attribute name used in the document path is not defined; attribute name: %s", word)
	}
	return p.names[word]
}

func (p *parser) operand() *operand {
	if !strings.HasPrefix(p.peek(), ":") {
		return &operand{name: p.name()}
	}
	word := p.next()
	p.used[word] = true
	v := p.values[word]
	if v == nil {
		p.fail("An expression attribute value used in expression is not defined; attribute value: %s", word)
	} else if err := v.valid(); err != nil {
		p.fail("%s", err.Message)
	}
	return &operand{value: v}
}

// change is what an update does. It goes by the item as it was before all of them.
type change func(before, after values) *failure

// update reads an update; none changes nothing.
func (p *parser) update(text string) (changes []change, touched []string) {
	p.words = split(text)
	seen := map[string]bool{}
	for len(p.words) > 0 && p.err == nil {
		clause := strings.ToUpper(p.next("SET", "REMOVE", "ADD"))
		if seen[clause] {
			p.fail("Invalid UpdateExpression: The %q section can only be used once in an update expression", clause)
		}
		seen[clause] = true
		for p.err == nil {
			name := p.name()
			if slices.Contains(touched, name) {
				p.fail("Invalid UpdateExpression: Two document paths overlap with each other; path: [%s]", name)
			}
			touched = append(touched, name)
			changes = append(changes, p.action(clause, name))
			if !p.keyword(",") {
				break
			}
		}
	}
	return changes, touched
}

func (p *parser) action(clause, name string) change {
	switch clause {
	case "SET":
		p.next("=")
		return p.set(name)
	case "ADD":
		by := p.operand()
		p.must(by, "ADD", "N")
		return func(before, after values) *failure {
			old := before[name]
			if old == nil {
				old = numberOf(new(big.Rat))
			}
			return calculate(after, name, old, "+", by.of(before))
		}
	}
	return func(_, after values) *failure {
		delete(after, name)
		return nil
	}
}

var errMissing = invalid("The provided expression refers to an attribute that does not exist in the item")

func (p *parser) set(name string) change {
	a := p.settable()
	operator := p.peek()
	if operator != "+" && operator != "-" {
		return func(before, after values) *failure {
			v := a.of(before)
			if v == nil {
				return errMissing
			}
			after[name] = v
			return nil
		}
	}
	p.next()
	b := p.settable()
	p.must(a, operator, "N")
	p.must(b, operator, "N")
	return func(before, after values) *failure {
		return calculate(after, name, a.of(before), operator, b.of(before))
	}
}

// settable reads an operand of SET.
func (p *parser) settable() *operand {
	if !p.keyword("if_not_exists") {
		return p.operand()
	}
	p.next("(")
	o := &operand{name: p.name()}
	p.next(",")
	o.otherwise = p.operand()
	p.next(")")
	return o
}

func calculate(after values, name string, a value, operator string, b value) *failure {
	if a == nil || b == nil {
		return errMissing
	}
	x, y := a.rat(), b.rat()
	if x == nil || y == nil {
		return invalid("An operand in the update expression has an incorrect data type")
	}
	if operator == "-" {
		y = new(big.Rat).Neg(y)
	}
	after[name] = numberOf(new(big.Rat).Add(x, y))
	return nil
}
