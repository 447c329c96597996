job "pipeline" {
  type = "batch"
  group "steps" {
    task "download" {
      lifecycle {
        hook = "prestart"
      }
      driver = "exec"
      config {
        command = "curl"
        args    = ["-fsSLO", "https://data.example/set.tar"]
      }
      resources { memory = 64 }
    }
    task "proxy" {
      lifecycle {
        hook    = "prestart"
        sidecar = true
      }
      driver = "exec"
      config { command = "proxy" }
      resources { memory = 32 }
    }
    task "main" {
      driver = "exec"
      config { command = "work" }
      resources { memory = 2048 }
    }
    task "cleanup" {
      lifecycle { hook = "poststop" }
      driver = "raw_exec"
      config {
        command = "sh"
        args    = ["-c", "rm -rf \"$NOMAD_ALLOC_DIR\"/tmp"]
      }
    }
  }
}
