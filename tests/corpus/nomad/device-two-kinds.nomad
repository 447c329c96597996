job "mixed" {
  group "g" {
    task "t" {
      driver = "exec"
      config { command = "/bin/run" }
      resources {
        cores = 2
        device "nvidia/gpu" { count = 2 }
        device "amd/gpu" { count = 1 }
      }
    }
  }
}
