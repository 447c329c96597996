job "misplaced" {
  group "g" {
    task "t" {
      driver = "docker"
      config { image = "registry.example/llm:1" }
      device "nvidia/gpu" { count = 1 }
      resources {
        cpu    = 2000
        memory = 8192
      }
    }
  }
}
