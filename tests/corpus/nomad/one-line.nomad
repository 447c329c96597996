job "line" { group "g" { task "t" { resources { memory = 33 } } } }
