package edgenode

import (
	"bytes"
	"io"
	"os"
)

// A tail reads a growing log in pieces that end with a line.
type tail struct {
	path   string
	offset int64
}

// read hands what was added since the last read to parse, up to the last full line.
func (t *tail) read(parse func(io.Reader) error) error {
	file, err := os.Open(t.path)
	if err != nil {
		return err
	}
	defer file.Close()
	news, err := io.ReadAll(io.NewSectionReader(file, t.offset, 1<<62))
	if err != nil {
		return err
	}
	news = news[:bytes.LastIndexByte(news, '\n')+1]
	t.offset += int64(len(news))
	return parse(bytes.NewReader(news))
}
