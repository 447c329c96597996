job "jvm" {
  group "g" {
    task "server" {
      driver = "java"
      config {
        jar_path    = "local/server.jar"
        jvm_options = ["-Xms512m", "-Xmx1536m"]
        args        = ["--port", "${NOMAD_PORT_http}"]
      }
      artifact {
        source      = "https://repo.example/server-9.jar"
        destination = "local/server.jar"
        mode        = "file"
      }
      resources {
        cpu    = 1000
        memory = 2048
      }
    }
    task "classes" {
      driver = "java"
      config {
        class      = "org.example.Main"
        class_path = "local/lib/*"
      }
      resources { memory = 256 }
    }
  }
}
