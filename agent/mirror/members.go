package mirror

import "bytes"

// cutMember takes a member out of well-formed JSON, found by the names of the objects around
// it and its own. All other bytes stay as they are, so that fields of newer servers survive.
// It returns data itself when there is no such member, or when data is no such JSON.
func cutMember(data []byte, path ...string) []byte {
	offset := 0
	for {
		m, ok := findMember(data[offset:], path[0])
		if !ok {
			return data
		}
		if len(path) > 1 {
			offset, path = offset+m.value, path[1:]
			continue
		}
		start, end := offset+m.start, offset+m.end
		// With it goes the comma behind it, or else the one before it.
		if next := skipSpace(data, end); next < len(data) && data[next] == ',' {
			end = next + 1
		} else {
			for i := start - 1; i > offset; i-- {
				if c := data[i]; c == ',' {
					start = i
					break
				} else if !isSpace(c) {
					break
				}
			}
		}
		out := make([]byte, 0, len(data)-(end-start))
		return append(append(out, data[:start]...), data[end:]...)
	}
}

// member of a JSON object: where its name starts, its value starts and its value ends.
type member struct{ start, value, end int }

// findMember finds a member of the object that data begins with.
func findMember(data []byte, name string) (member, bool) {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return member{}, false
	}
	for i++; ; i++ {
		i = skipSpace(data, i)
		if i >= len(data) || data[i] != '"' {
			return member{}, false
		}
		m := member{start: i}
		i = skipString(data, i)
		key := data[m.start:i]
		i = skipSpace(data, i)
		if i >= len(data) || data[i] != ':' {
			return member{}, false
		}
		m.value = skipSpace(data, i+1)
		m.end = skipValue(data, m.value)
		if len(key) == len(name)+2 && bytes.Equal(key[1:len(key)-1], []byte(name)) {
			return m, true
		}
		i = skipSpace(data, m.end)
		if i >= len(data) || data[i] != ',' {
			return member{}, false
		}
	}
}

// skipValue is the index behind the value that starts at i.
func skipValue(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			i = skipString(data, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			// Depth 0: the end of what is around a number, true, false or null.
			if depth--; depth < 0 {
				return i
			}
			if depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

// skipString is the index behind the string that starts at i.
func skipString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && isSpace(data[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
