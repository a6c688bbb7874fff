package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
)

// errChecksum: a value is not what was written.
var errChecksum = errors.New("checksum does not match")

const checksumSize = 8

// seal encodes a value behind its checksum.
func seal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", v, err)
	}
	sum := sha256.Sum256(data)
	return append(sum[:checksumSize:checksumSize], data...), nil
}

// open decodes what seal encoded.
func open(value []byte, v any) error {
	if len(value) < checksumSize {
		return errChecksum
	}
	data := value[checksumSize:]
	sum := sha256.Sum256(data)
	if !bytes.Equal(sum[:checksumSize], value[:checksumSize]) {
		return errChecksum
	}
	return json.Unmarshal(data, v)
}
