job "conflicts" {
  group "g" {
    task "t" {
      driver = "exec"
      config { command = "/bin/x" }
      resources {
        cpu        = 500
        cores      = 2
        memory     = 512
        memory_max = 256
      }
    }
  }
}
