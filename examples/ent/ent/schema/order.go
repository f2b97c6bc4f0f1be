// Package schema describes the business table to ent.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
)

// Order is a row of the table orders.
type Order struct{ ent.Schema }

// Fields returns its columns.
func (Order) Fields() []ent.Field {
	return []ent.Field{field.String("number").Unique(), field.Int64("amount")}
}
