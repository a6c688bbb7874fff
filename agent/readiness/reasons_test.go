package readiness

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Every reason of a finding has its cure in the docs.
func TestEveryReasonIsInTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../../docs/readiness.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/findings.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	reasons := 0
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			reason, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			reasons++
			if text := string(docs); !strings.Contains(text, "\n| "+reason+" |") && !strings.Contains(text, "`"+reason+"`") {
				t.Errorf("docs/readiness.md says nothing of %s", reason)
			}
		}
		return true
	})
	if reasons < 30 {
		t.Errorf("%d reasons found in findings.go", reasons)
	}
}
