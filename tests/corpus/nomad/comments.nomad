/* job "commented" {
  group "x" { task "y" { resources { memory = 1 } } }
} */
# job "hash" {}
// job "slash" {}
job "real" { # here
  group "g" { // and here
    task "t" { /* and here */
      driver = "exec"
      config {
        command = "/bin/a#b" # not a comment in the string
        args = [ /* none */ ]
      }
      resources {
        # memory = 1
        memory = /* inline */ 321 // MB
        cpu    = 111 /* last */
      }
    }
  }
}
