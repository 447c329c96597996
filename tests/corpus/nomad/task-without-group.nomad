job "short" {
  type = "batch"
  task "only" {
    driver = "exec"
    config { command = "/bin/date" }
    resources { memory = 50 }
  }
}
