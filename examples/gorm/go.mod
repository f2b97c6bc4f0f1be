module example.com/outbox-relay/examples/gorm

go 1.26.8

require (
	example.com/outbox-relay v0.0.0
	github.com/go-sql-driver/mysql v1.10.1
	gorm.io/driver/mysql v1.6.0
	gorm.io/gorm v1.31.2
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	golang.org/x/text v0.42.0 // indirect
)

replace example.com/outbox-relay => ../..
