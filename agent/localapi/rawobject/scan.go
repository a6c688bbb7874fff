package rawobject

// encoding/json reads an object three times to cut it into fields, and kubelet's first list
// waits for that. What follows reads it once. It accepts nothing that encoding/json does not;
// what it does not accept is left to that.

// deepest is how deep values may lie in each other.
const deepest = 500

// scanner is at a place in a JSON text.
type scanner struct {
	text []byte
	at   int
}

// fieldsOf cuts an object into its fields, which share its bytes.
func fieldsOf(text []byte) (Fields, bool) {
	s := scanner{text: text}
	f, ok := s.fields()
	return f, ok && s.end()
}

// listOf cuts a list of objects.
func listOf(text []byte) ([]Fields, bool) {
	s := scanner{text: text}
	list := []Fields{}
	ok := s.elements(func() bool {
		f, ok := s.fields()
		list = append(list, f)
		return ok
	})
	return list, ok && s.end()
}

// textOf is a string without any escape.
func textOf(text []byte) (string, bool) {
	s := scanner{text: text}
	value, ok := s.plain()
	return value, ok && s.end()
}

func (s *scanner) fields() (Fields, bool) {
	f := Fields{}
	ok := s.members(func(name string) bool {
		from := s.at
		if !s.value(deepest) {
			return false
		}
		f[name] = s.text[from:s.at:s.at]
		return true
	})
	return f, ok
}

// members calls value at each value of an object.
func (s *scanner) members(value func(name string) bool) bool {
	return s.sequence('{', '}', func() bool {
		name, ok := s.plain()
		s.space()
		if !ok || !s.is(':') {
			return false
		}
		s.space()
		return value(name)
	})
}

// elements calls value at each value of a list.
func (s *scanner) elements(value func() bool) bool { return s.sequence('[', ']', value) }

func (s *scanner) sequence(open, end byte, element func() bool) bool {
	s.space()
	if !s.is(open) {
		return false
	}
	s.space()
	if s.is(end) {
		return true
	}
	for {
		s.space()
		if !element() {
			return false
		}
		s.space()
		if s.is(end) {
			return true
		}
		if !s.is(',') {
			return false
		}
	}
}

// value passes a value of any kind.
func (s *scanner) value(depth int) bool {
	if s.at == len(s.text) || depth == 0 {
		return false
	}
	switch c := s.text[s.at]; c {
	case '"':
		return s.quoted()
	case '{':
		return s.sequence('{', '}', func() bool {
			if !s.quoted() {
				return false
			}
			s.space()
			if !s.is(':') {
				return false
			}
			s.space()
			return s.value(depth - 1)
		})
	case '[':
		return s.elements(func() bool { return s.value(depth - 1) })
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

// quoted passes a string.
func (s *scanner) quoted() bool {
	if !s.is('"') {
		return false
	}
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch {
		case c == '"':
			return true
		case c < ' ':
			return false
		case c == '\\' && !s.escape():
			return false
		}
	}
	return false
}

// escape passes what follows a backslash.
func (s *scanner) escape() bool {
	if s.at == len(s.text) {
		return false
	}
	c := s.text[s.at]
	s.at++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if s.at == len(s.text) || !isHex(s.text[s.at]) {
				return false
			}
			s.at++
		}
		return true
	}
	return false
}

// plain is a string that reads as it is written.
func (s *scanner) plain() (string, bool) {
	if !s.is('"') {
		return "", false
	}
	from := s.at
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return string(s.text[from : s.at-1]), true
		case c < ' ' || c == '\\' || c >= 0x7f:
			return "", false
		}
	}
	return "", false
}

func (s *scanner) number() bool {
	s.is('-')
	if !s.is('0') && !s.digits() {
		return false
	}
	if s.is('.') && !s.digits() {
		return false
	}
	if s.is('e') || s.is('E') {
		_ = s.is('+') || s.is('-')
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

func (s *scanner) word(word string) bool {
	if len(s.text)-s.at < len(word) || string(s.text[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

func (s *scanner) is(c byte) bool {
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// end says whether nothing is left.
func (s *scanner) end() bool {
	s.space()
	return s.at == len(s.text)
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
