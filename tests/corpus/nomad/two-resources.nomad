job "twice" {
  group "g" {
    task "t" {
      driver = "exec"
      resources { memory = 100 }
      resources { memory = 200 }
    }
  }
}
