job "wrong" {
  group "g" {
    ephemeral_disk { size = "5 GB" }
    task "t" {
      driver = "exec"
      config { command = "/bin/x" }
      resources {
        cpu        = -100
        memory     = 1.5
        memory_max = "lots"
        cores      = 99999999999999
      }
    }
  }
}
