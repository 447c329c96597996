job "open" {
  group "g" {
    task "t" {
      driver = "exec
    }
  }
}
