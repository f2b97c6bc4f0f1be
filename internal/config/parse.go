package config

import (
	"errors"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxDepth is deeper than any setting; it stops a file of a million brackets.
const maxDepth = 20

// converter makes a node tree of a YAML document. What is wrong goes to the problems, without the text around it: the
// library's own message would quote a secret.
type converter struct {
	problems *problemList
	origin   string // the file's name
	line     *place // where every value stands, for a text that is no file
	literal  bool   // of every node
	anchors  map[string]*node
}

// document returns the root, nil for an empty document or one that is no YAML.
func (c *converter) document(source []byte) *node {
	c.anchors = make(map[string]*node)
	file, err := parser.ParseBytes(source, 0)
	if err != nil {
		c.syntax(err)
		return nil
	}
	var root *node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			c.problems.add("", c.place(doc.Body), "a second YAML document; keep everything in the first")
			return root
		}
		root = c.node(doc.Body, 0)
	}
	if root != nil && root.kind != mapping && root.kind != null {
		c.problems.add("", root.at, "must be a mapping such as \"kafka: {...}\", not %s", root.kind)
		return nil
	}
	return root
}

func (c *converter) syntax(err error) {
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) {
		c.problems.add("", place{origin: c.origin}, "is no YAML")
		return
	}
	c.problems.add("", c.placeOf(syntax.Token), "is no YAML: %s", syntax.Message)
}

func (c *converter) place(n ast.Node) place { return c.placeOf(n.GetToken()) }

func (c *converter) placeOf(t *token.Token) place {
	if c.line != nil {
		return *c.line
	}
	at := place{origin: c.origin}
	if t != nil && t.Position != nil {
		at.line, at.column = t.Position.Line, t.Position.Column
	}
	return at
}

// node converts a value. Numbers and booleans keep the text they were written as.
func (c *converter) node(n ast.Node, depth int) *node {
	at := c.place(n)
	if depth > maxDepth {
		c.problems.add("", at, "nested deeper than any setting")
		return &node{at: at}
	}
	switch n := n.(type) {
	case *ast.NullNode:
		return &node{at: at}
	case *ast.LiteralNode:
		return &node{kind: scalar, text: n.Value.Value, at: at, literal: c.literal}
	case *ast.StringNode:
		return &node{kind: scalar, text: n.Value, at: at, literal: c.literal}
	case *ast.TagNode:
		return c.node(n.Value, depth+1)
	case *ast.AnchorNode:
		value := c.node(n.Value, depth+1)
		c.anchors[n.Name.GetToken().Value] = value
		return value
	case *ast.AliasNode:
		return c.alias(n, at)
	case *ast.SequenceNode:
		return c.sequence(n, at, depth)
	case *ast.MappingNode:
		return c.mapping(n.Values, n.IsFlowStyle, at, depth)
	case *ast.MappingValueNode:
		return c.mapping([]*ast.MappingValueNode{n}, n.IsFlowStyle, at, depth)
	case ast.ScalarNode:
		return &node{kind: scalar, text: n.GetToken().Value, at: at, literal: c.literal}
	}
	c.problems.add("", at, "is YAML that a configuration does not need; write a plain value")
	return &node{at: at}
}

func (c *converter) alias(n *ast.AliasNode, at place) *node {
	name := n.Value.GetToken().Value
	value, ok := c.anchors[name]
	if !ok {
		c.problems.add("", at, "the alias *%s has no anchor &%s before it", name, name)
		return &node{at: at}
	}
	return value
}

func (c *converter) sequence(n *ast.SequenceNode, at place, depth int) *node {
	out := &node{kind: list, at: at}
	for _, value := range n.Values {
		item, ok := c.rejoin(value)
		if !ok {
			item = c.node(value, depth+1)
		}
		out.items = append(out.items, item)
	}
	return out
}

// rejoin recognises a plain kafka1:9092 in {brokers: [kafka1:9092]}: text by YAML's rules, because no space follows the
// colon, but the library reads a mapping there.
func (c *converter) rejoin(item ast.Node) (*node, bool) {
	value, ok := item.(*ast.MappingValueNode)
	if m, many := item.(*ast.MappingNode); many && len(m.Values) == 1 && m.Start.Value != "{" {
		value, ok = m.Values[0], true
	}
	if !ok {
		return nil, false
	}
	before, after := value.Key.GetToken(), value.Value.GetToken()
	if _, scalarValue := value.Value.(ast.ScalarNode); !scalarValue || !unquoted(before) || !unquoted(after) {
		return nil, false
	}
	if before.Position.Line != after.Position.Line || before.Position.Column+len(before.Value)+1 != after.Position.Column {
		return nil, false
	}
	text := before.Value + ":" + after.Value
	return &node{kind: scalar, text: text, at: c.place(value.Key), literal: c.literal}, true
}

func unquoted(t *token.Token) bool {
	return t.Type == token.StringType || t.Type == token.IntegerType || t.Type == token.FloatType
}

// mapping converts the fields; those of a merge key (<<) give way to the mapping's own. A block mapping's token is its
// first colon, and the place a person would look at is the key before it.
func (c *converter) mapping(values []*ast.MappingValueNode, flow bool, at place, depth int) *node {
	out := &node{kind: mapping, at: at}
	if len(values) > 0 && !flow {
		out.at = c.place(values[0].Key)
	}
	var bases []*node
	for _, v := range values {
		value := c.node(v.Value, depth+1)
		if v.Key.IsMergeKey() {
			bases = append(bases, value)
			continue
		}
		key := v.Key.GetToken().Value
		if k, ok := v.Key.(*ast.MappingKeyNode); ok {
			key = k.Value.GetToken().Value
		}
		out.fields = append(out.fields, entry{key: key, at: c.place(v.Key), value: value})
	}
	for _, base := range bases {
		out = inheritFields(out, base)
	}
	return out
}

// inheritFields adds what a merged mapping, or a list of them, has and out has not.
func inheritFields(out, base *node) *node {
	for _, item := range base.items {
		out = inheritFields(out, item)
	}
	for _, e := range base.fields {
		if out.field(e.key) == nil {
			out = out.with(e.key, e.at, e.value)
		}
	}
	return out
}
